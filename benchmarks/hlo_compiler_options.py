"""Gains of XLA:CPU's compiler options on published programs: each option in turn with the defaults.

An option is kept for a program if it gains more than the noise, by the defaults timed against themselves. The
options that gained are then combined, program by program, and timed again: the last column, and the mean that
is reported. Options that change numerics are left out, or marked with an asterisk and not combined.

    pip install dm-haiku flax equinox optax numpyro diffrax
    python benchmarks/hlo_compiler_options.py --threads 1
    python benchmarks/hlo_compiler_options.py --threads 2
"""

import math
import os
import statistics
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context

import tyro
from hlo_published import PACKAGES, programs

from irgym.core.dataset import spread
from irgym.envs.hlo.compiling.executable import CompileFailure, compile_module
from irgym.envs.hlo.compiling.stablehlo import stablehlo
from irgym.envs.hlo.environment import HLO
from irgym.measure.machine import fingerprint
from irgym.measure.timing import DEFAULT_TIMING, interleave

Choice = Mapping[str, bool | int | str]
"""Values of some options of XLA, by name."""

CHOICES: dict[str, Choice] = {
    "vectors of 512 bits": {"xla_cpu_prefer_vector_width": 512},
    "vectors of 128 bits": {"xla_cpu_prefer_vector_width": 128},
    "AVX2": {"xla_cpu_max_isa": "AVX2"},
    "older fusion emitters": {"xla_cpu_use_fusion_emitters": False},
    "other copies": {"xla_cpu_copy_insertion_use_region_analysis": True},
    "one object": {"xla_cpu_parallel_codegen_split_count": 1},
    "concurrent": {"xla_cpu_enable_concurrency_optimized_scheduler": True},
    "in sequence": {"xla_cpu_enable_concurrency_optimized_scheduler": False},
    "LLVM -O2": {"xla_backend_optimization_level": 2},
    "fast min and max*": {"xla_cpu_enable_fast_min_max": True},
}
"""Options by name; an asterisk marks those that change results."""


@dataclass(frozen=True)
class Options:
    """Options of the benchmark."""

    threads: int = 1
    """Threads of XLA:CPU."""
    limit: int = 20
    """Number of programs, spread over the published ones."""
    rounds: int = 9
    """Rounds in which an option and the defaults are timed in turn."""
    packages: tuple[str, ...] = tuple(PACKAGES)
    """Packages of the programs."""


def ratios_of(proto: bytes, threads: int, rounds: int) -> dict[str, float]:
    """Return for each choice the time by the defaults over the time with it, in turn; NaN if refused."""
    os.environ["PJRT_NPROC"] = str(threads)
    import jax
    from jaxlib import _jax, xla_client

    from irgym.envs.hlo.compiling.execution import SEED, random_arguments

    client = xla_client.make_cpu_client(asynchronous=False)
    compile_module(proto)  # registers what the module calls
    text = stablehlo(proto).encode()
    with jax.enable_x64(True):  # otherwise jax narrows 64-bit numbers
        arguments = [
            jax.device_put(array, client.local_devices()[0]) for array in random_arguments(proto, SEED)
        ]

    def bound(choice: Choice) -> Callable[[int], None]:
        options = _jax.CompileOptions()
        options.env_option_overrides = list(choice.items())
        loaded = client.compile_and_load(text, _jax.DeviceList((client.local_devices()[0],)), options)

        def repeat(count: int) -> None:
            for _ in range(count):
                loaded.execute_sharded(arguments, with_tokens=True).consume_token().block_until_ready()

        return repeat

    def ratio(choice: Choice) -> float:
        try:
            pairs = interleave(bound(choice), base, rounds, timing)
        except (jax.errors.JaxRuntimeError, ValueError) as error:
            print(f"{dict(choice)}: {str(error).splitlines()[0]}", file=sys.stderr, flush=True)
            return math.nan
        return statistics.median(default / ours for ours, default in pairs)

    timing = replace(DEFAULT_TIMING, clock="thread" if threads == 1 else "process")
    base = bound({})
    found = {"noise": ratio({})} | {name: ratio(choice) for name, choice in CHOICES.items()}
    limit = 1 + 2 * abs(found["noise"] - 1) + 0.02
    gaining = [name for name, value in found.items() if value > limit and not name.endswith("*")]
    together = {key: value for name in gaining if name in CHOICES for key, value in CHOICES[name].items()}
    return found | {"combined": ratio(together) if together else 1.0}


def main(options: Options) -> None:
    """Print the ratios of each program, and their geometric means."""
    print(f"{fingerprint().text()}; XLA:CPU, threads: {options.threads}")
    named = programs(options.packages)
    table: dict[str, dict[str, float]] = {}
    for name in spread(tuple(named), options.limit):
        modules = HLO.task(named[name]).modules
        proto: bytes = HLO.pool().call("proto", modules.file, ())
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as executor:
            try:
                table[name] = executor.submit(ratios_of, proto, options.threads, options.rounds).result()
            except CompileFailure as error:
                print(f"{name}: {error}", flush=True)
                continue
        told = ", ".join(f"{choice} {ratio:.2f}" for choice, ratio in table[name].items())
        print(f"{name}: {told}", flush=True)
    for choice in ("noise", *CHOICES, "combined"):
        known = [row[choice] for row in table.values() if not math.isnan(row[choice])]
        if known:
            print(
                f"{choice:22s} {statistics.geometric_mean(known):.3f} on {len(known)} programs, "
                f"{min(known):.2f} to {max(known):.2f}"
            )


if __name__ == "__main__":
    main(tyro.cli(Options, description=__doc__))
