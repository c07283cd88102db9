"""Torch modules tuned and called in their place: against torch eager and `torch.compile`, timed in turn.

Each module is tuned by `irgym.tune(module, *inputs)`, which checks the results. Then calls from Python are
timed in turn in one process, on equally many threads: the result, the module as it is, the module compiled.
Outputs of other inputs than those that it was tuned with are compared too.

    pip install torchvision transformers
    python benchmarks/torch_modules.py --out docs/measured/torch_modules.md
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
import tyro
from torch import nn

import irgym
from irgym.envs.graph.programs.models.images import declare_operators_that_cannot_be_loaded
from irgym.measure.machine import fingerprint


@dataclass(frozen=True)
class Options:
    """Options."""

    modules: tuple[str, ...] = ()
    """Modules by name; all if empty."""
    threads: tuple[int, ...] = (1, 2)
    """Numbers of threads."""
    environments: tuple[str, ...] = ("graph", "linalg")
    """Which environments tune them."""
    seconds: float = 20.0
    """Time for each search."""
    out: Path | None = None
    """Where to write the table."""
    child: bool = False
    """For child processes: run the first name here, and print the outcome as JSON."""


def _vision(name: str) -> tuple[nn.Module, torch.Tensor]:
    declare_operators_that_cannot_be_loaded()
    return import_module("torchvision.models").get_model(name, weights=None), torch.randn(1, 3, 224, 224)


def _bert() -> tuple[nn.Module, torch.Tensor]:
    declare_operators_that_cannot_be_loaded()  # transformers imports torchvision
    bert = import_module("transformers.models.bert.modeling_bert")
    configuration = import_module("transformers").BertConfig(attn_implementation="eager")
    return bert.BertLayer(configuration), torch.randn(1, 128, 768)


def _perceptron() -> tuple[nn.Module, torch.Tensor]:
    layers = (nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
    return nn.Sequential(*layers), torch.randn(64, 784)


MODULES: dict[str, Callable[[], tuple[nn.Module, torch.Tensor]]] = {
    "resnet18": partial(_vision, "resnet18"),
    "mobilenet_v3_small": partial(_vision, "mobilenet_v3_small"),
    "bert_layer": _bert,
    "mlp": _perceptron,
}
"""Builders by name; weights are random."""


@dataclass(frozen=True)
class Found:
    """Outcome of a module.

    Attributes:
        module: Its name.
        environment: What tuned it.
        threads: On how many threads all ran.
        validated: Whether irgym's check and this benchmark's agree that results are right.
        speedup: Over the original program, as `tune` reports it.
        reported: Over the environment's baseline, as `tune` reports it; None where there is none.
        eager: Median ratio of torch's time to ours.
        compiled: The same of `torch.compile`.
    """

    module: str
    environment: str
    threads: int
    validated: bool
    speedup: float
    reported: float | None
    eager: float
    compiled: float


def find(name: str, environment: str, threads: int, seconds: float) -> Found:
    """Tune a module in this process and time calls of it."""
    torch.manual_seed(0)
    torch.set_num_threads(threads)
    module, x = MODULES[name]()
    module.eval()
    backend = None if threads == 1 else f":{threads}"
    fast = irgym.tune(
        module, x, environment=environment, seconds=seconds, measuring=irgym.Measuring(backend=backend)
    )
    other = torch.randn_like(x)
    with torch.inference_mode():
        wanted, found = (_first(function(other)) for function in (module, fast))
        same = torch.allclose(found, wanted, rtol=1e-3, atol=1e-3 * float(wanted.abs().max()))
        compiled = torch.compile(module)
        compiled(x)
    return Found(
        name,
        environment,
        threads,
        bool(fast.validated and same),
        fast.speedup,
        fast.baseline_ratio,
        fast.versus_original().ratio,
        fast.versus_original(compiled).ratio,
    )


def _first(results: Any) -> torch.Tensor:
    return results[0] if isinstance(results, tuple) else results


def apart(name: str, environment: str, threads: int, options: Options) -> Found | str:
    """Run a module in a child process; return the reason if there is no result."""
    words = [sys.executable, __file__, "--child", "--modules", name, "--environments", environment]
    words += ["--threads", str(threads), "--seconds", str(options.seconds)]
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    if done.returncode:
        return done.stderr.splitlines()[-1]
    return Found(**json.loads(done.stdout.splitlines()[-1]))


HEADS = (
    "| module | threads | environment | validated | over the original | over eager | over torch.compile |",
    "|---|---|---|---|---|---|---|",
)


def line(row: Found) -> str:
    """Return the row of the table."""
    cells = (
        f"`{row.module}`",
        row.threads,
        row.environment,
        "yes" if row.validated else "NO",
        f"{row.speedup:.2f}",
        f"{row.eager:.2f}",
        f"{row.compiled:.2f}",
    )
    return f"| {' | '.join(map(str, cells))} |"


def main() -> None:
    """Run all."""
    options = tyro.cli(Options, description=__doc__)
    names = options.modules or tuple(MODULES)
    if options.child:
        row = find(names[0], options.environments[0], options.threads[0], options.seconds)
        print(json.dumps(asdict(row)))
        return
    lines = list(HEADS)
    print(*lines, sep="\n")
    for name in names:
        for threads in options.threads:
            for environment in options.environments:
                found = apart(name, environment, threads, options)
                missing = f"| `{name}` | {threads} | {environment} | {found} | | | |"
                lines.append(missing if isinstance(found, str) else line(found))
                print(lines[-1], flush=True)
    packages = ", ".join(f"{name} {version(name)}" for name in ("torch", "torchvision", "transformers"))
    written = f"{packages}; searches of {options.seconds:g} s; {fingerprint().text()}."
    print(written)
    if options.out is not None:
        date = f"Written by `python benchmarks/torch_modules.py`, {time.strftime('%Y-%m-%d')}."
        options.out.write_text("\n".join([*lines, "", written, date, ""]))


if __name__ == "__main__":
    main()
