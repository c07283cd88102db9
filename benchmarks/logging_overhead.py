"""Share of a training's time that loggers, evaluations and metrics take.

    irgym imitate loops --dataset mm64_128_16_range --searched 8 --seconds 4 --programs 60 --out start.pt
    python benchmarks/logging_overhead.py --log tensorboard,csv,wandb --start start.pt

The shares are of the time without gradient steps. What a logger does once, at the start and the end, counts
less the longer a training is. Weights & Biases is started offline. Without a policy to start from, the
training soon stops at once: nothing is measured then, and the shares are the greatest there are.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import irgym
from irgym.agents import training
from irgym.agents.metrics import Metrics
from irgym.loggers import make_loggers
from irgym.loggers.logger import METHODS
from irgym.policies.run_folder import RunFolder


class Stopwatch:
    """Sums the seconds that functions take, by the name of what they are part of."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def timed(self, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that does the same and counts its time."""

        def run(*arguments: Any, **named: Any) -> Any:
            started = time.perf_counter()
            try:
                return function(*arguments, **named)
            finally:
                spent = time.perf_counter() - started
                self.seconds[part] = self.seconds.get(part, 0.0) + spent

        return run


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dataset", default="mm64_128_16_range")
    parser.add_argument("--iterations", type=int, default=100)
    parser.add_argument("--episodes", type=int, default=64)
    parser.add_argument("--evaluate-every", type=int, default=10)
    parser.add_argument("--evaluate-limit", type=int, default=8)
    parser.add_argument("--log", default="tensorboard,csv,wandb")
    parser.add_argument("--start", default="", help="policy to start from, of imitate")
    options = parser.parse_args()
    os.environ.setdefault("WANDB_MODE", "offline")
    os.environ.setdefault("WANDB_SILENT", "true")
    watch, seen = Stopwatch(), list[Metrics]()
    names = options.log.split(",")
    loggers = make_loggers(names)
    for name, logger in zip(names, loggers, strict=True):
        for method in METHODS:
            part = f"{name}, once" if method in ("start", "artefact", "end") else name
            setattr(logger, method, watch.timed(part, getattr(logger, method)))
    for function in ("metrics_of", "logged_values"):
        setattr(training, function, watch.timed("metrics", getattr(training, function)))
    RunFolder.append_metrics = watch.timed("metrics", RunFolder.append_metrics)
    with tempfile.TemporaryDirectory(prefix="irgym-logging-") as folder:
        started = time.perf_counter()
        irgym.train(
            "loops",
            Path(folder) / "run",
            training=irgym.Training(
                dataset=options.dataset,
                iterations=options.iterations,
                evaluate_every=options.evaluate_every,
                evaluate_limit=options.evaluate_limit,
                log="none",
                loggers=tuple(loggers),
                # Without exploration the policy may soon stop at once, and iterations take no time.
                hyperparameters={
                    "episodes": options.episodes,
                    "entropy": 0.05,
                    "entropy_end": 0.05,
                    "start": options.start,
                },
            ),
            note=print,
            progress=seen.append,
        )
        total = time.perf_counter() - started
    learning = sum(row.learning_s + (row.values_s or 0.0) for row in seen)
    parts = {**watch.seconds, "evaluation": sum(row.evaluating_s for row in seen)}
    rest = total - learning
    print(f"{options.iterations} iterations in {total:.1f} s, {learning:.1f} s of them gradient steps")
    cached, asked = seen[-1].cached, seen[-1].evaluations
    print(f"{cached} of {asked} costs came from the cost cache")
    for part, seconds in parts.items():
        print(f"{part:18} {seconds:7.2f} s  {seconds / rest:6.2%}")
    together = sum(parts.values())
    print(f"{'together':18} {together:7.2f} s  {together / rest:6.2%}")


if __name__ == "__main__":
    main()
