"""Several SuperPMI processes at once, on a stand-in that misbehaves: no answer may be lost or mixed up.

    python benchmarks/cse_superpmi.py --requests 100000

The stand-in (tests/toys/superpmi.py) speaks SuperPMI's protocol. At random it dies, aborts, prints garbage or
half an answer, adds words, or says nothing. Each score must belong to the requested choice, and
each failure must be reported.
"""

import os
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import tyro

from irgym.core.cost import Call, Measurement
from irgym.envs.cse.superpmi.environment import LIMITS
from irgym.envs.cse.superpmi.session import Collection
from irgym.envs.cse.superpmi.task import RUNNER
from irgym.measure.farm import LocalFarm
from irgym.measure.isolation.protocol import Raised, Returned
from irgym.measure.machine import fingerprint

STAND_IN = Path(__file__).parents[1] / "tests" / "toys" / "superpmi.py"

METHODS = 1000


@dataclass(frozen=True)
class Options:
    """Options of the benchmark."""

    requests: int = 100_000
    """Number of requests."""
    processes: int = 4
    """Number of SuperPMI processes."""
    faults: float = 0.002
    """Share of requests at which a process misbehaves."""
    timeout_s: float = 2.0
    """Time limit for an answer, in seconds."""
    seed: int = 0
    """Seed of the requests and of the faults."""


def collection_in(folder: Path, options: Options) -> Collection:
    """Create a folder like CORE_ROOT that contains the stand-in."""
    (folder / "libclrjit.so").touch()
    (folder / "some.mch").touch()
    program = folder / "superpmi"
    own = f"--faults {options.faults} --seed {options.seed} --methods {METHODS}"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} {STAND_IN} {own} "$@"\n')
    program.chmod(0o755)
    return Collection(folder, folder / "some.mch", options.timeout_s)


def score_of(index: int, chosen: tuple[int, ...]) -> float:
    """Return the score that the stand-in must give to a choice."""
    return (
        100.0 + index - sum(place + 1 for place in chosen) + (3 if chosen and len(chosen) == index % 7 else 0)
    )


def main(options: Options) -> None:
    """Print the numbers of right, failed, wrong and lost answers."""
    print(fingerprint().text())
    rng = np.random.default_rng(options.seed)
    asked = [
        (index, tuple(place for place in range(index % 7) if rng.random() < 0.5))
        for index in rng.integers(1, METHODS + 1, options.requests).tolist()
    ]
    counts: Counter[str] = Counter()
    with TemporaryDirectory() as folder, LocalFarm(options.processes, LIMITS) as farm:
        collection = collection_in(Path(folder), options)
        calls = [Call(f"{RUNNER}:measure", (collection, *request, "score")) for request in asked]
        started = time.perf_counter()
        replies = farm.run(calls)
        seconds = time.perf_counter() - started
    for (index, chosen), reply in zip(asked, replies, strict=True):
        if isinstance(reply, Returned) and isinstance(reply.value, Measurement):
            right = reply.value.ok and reply.value.cost == score_of(index, chosen)
            counts["right" if right else "told to have failed" if not reply.value.ok else "wrong"] += 1
        else:
            counts["told to have failed" if isinstance(reply, Raised) else "lost"] += 1
    counts["lost"] += len(asked) - len(replies)
    print(
        f"{options.requests} requests, {options.processes} processes on {os.cpu_count()} cores, "
        f"{options.requests / seconds:.0f} a second: "
        + ", ".join(f"{counts[name]} {name}" for name in ("right", "told to have failed", "wrong", "lost"))
    )
    sys.exit(1 if counts["wrong"] or counts["lost"] else 0)


if __name__ == "__main__":
    main(tyro.cli(Options))
