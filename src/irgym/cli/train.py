"""`irgym train`."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro
from tyro.conf import Positional

from irgym.cli.hyperparameters import configured
from irgym.cli.options import (
    check_count,
    check_file,
    check_most,
    check_name,
    check_objective,
    check_seconds,
    check_seed,
    dataset_named,
    task_of,
)
from irgym.cli.output import console, require_torch, write_json
from irgym.core.environment import ENVIRONMENTS, reward_of, spread
from irgym.core.errors import IrgymError
from irgym.evaluate.run import read_problem
from irgym.evaluate.targets import machine_text, peak_of
from irgym.prediction.screen import Screen, check_share

if TYPE_CHECKING:
    from irgym.agents.metrics import Metrics


@dataclass(frozen=True)
class Train:
    """Train a policy on the training programs of a data set; show progress, keep checkpoints."""

    environment: Positional[str]
    """Name of the environment."""
    folder: Annotated[Path, tyro.conf.arg(name="run")]
    """Folder for checkpoints, metrics (JSON lines, TensorBoard) and the policy."""
    agent: str = "ppo"
    """Learning algorithm, such as ppo, a2c, dqn or apex."""
    dataset: str | None = None
    """Name of a data set; by default the environment's own."""
    seconds: float | None = None
    """Stop after this training time, that before a resumption included."""
    iterations: int | None = None
    """Stop after this number of iterations in all; by default the agent's own number."""
    seed: int = 0
    """Seed of all random choices."""
    resume: bool = False
    """Continue the run in the folder exactly where its last checkpoint left it."""
    objective: str | None = None
    """What is minimised, such as `time`; by default the environment's own objective."""
    reward: str = "default"
    """Name of one of the environment's rewards."""
    backend: str | None = None
    """Back end; by default the preferred one that runs here."""
    target: str | None = None
    """What code is made for, such as x86-64-v3 (AVX2); by default this machine."""
    farm: str | None = None
    """Where to measure: local:N, dask://HOST:PORT or slurm?workers=N; by default in one process here."""
    validate: int = 0
    """Keep the policy that is best on this many training programs, greedily; 0 keeps the newest.

    Costs drift with the processor's clock, so that the best of many validations may only be the luckiest.
    """
    screen: float | None = None
    """Measure this share of the new programs of an iteration: those that a learned cost model likes best.

    The others are rewarded by its predictions, which are neither recorded nor reported.
    """
    json: Path | None = None
    """Write the metrics of all iterations as JSON to this file at the end."""
    set: tuple[str, ...] = ()
    """Hyper-parameters of the agent as name=value, such as lr=3e-4 episodes=256."""

    def run(self) -> None:
        """Train until the end or the time limit; an interrupt loses what came after the last checkpoint."""
        self._check()
        check_file(self.json)
        require_torch("training")
        from irgym.agents import AGENTS
        from irgym.agents.problem import Problem, makers_of
        from irgym.agents.run_folder import RunFolder
        from irgym.agents.training import train

        environment = ENVIRONMENTS.load(self.environment)
        dataset = dataset_named(environment, self.dataset)
        if not dataset.train:
            raise IrgymError(f"the data set {dataset.name} has no training programs: choose another")
        check_objective(environment, self.objective)
        reward = reward_of(environment, self.reward)
        config = configured(AGENTS.load(self.agent), self.set, self.seed, self.agent)
        if bool(self.validate) != bool(config.validate_every):
            raise IrgymError(
                "validation needs both --validate N and --set validate_every=N: give both or none"
            )
        RunFolder(self.folder).check(self.resume)
        # The reward's scale is part of the problem: a resumed run keeps the one that it began with.
        recorded = read_problem(self.folder) if self.resume else None
        out = console()
        with environment.bench(self.farm, self.backend) as bench:
            tasks = [
                task_of(environment, uri, self.backend, self.target, self.objective) for uri in dataset.train
            ]
            out.print(
                f"{self.agent} on {len(tasks)} programs of {dataset.name}; {machine_text(bench, tasks[0])}"
            )
            peak = peak_of(bench, tasks[0]) if recorded is None else recorded.peak_gflops
            makers = makers_of(self.environment, dataset.train, self.backend, self.target, self.objective)
            problem = Problem(tasks, bench.evaluator, reward, peak, makers)
            screen = None if self.screen is None else Screen(bench.evaluator, tasks, self.screen, self.seed)
            train(
                config,
                problem,
                self.folder,
                resume=self.resume,
                iterations=self.iterations,
                seconds=self.seconds,
                progress=lambda metrics: out.print(_line(metrics)),
                validation=spread(tasks, self.validate),
                environment=environment.name,
                details={
                    "dataset": dataset.name,
                    "objective": self.objective,
                    "reward": self.reward,
                    "backend": self.backend,
                    "target": None if tasks[0].target is None else tasks[0].target.name,
                    "validate": self.validate,
                    "peak_gflops": peak,
                    "screen": self.screen,
                },
                screen=screen,
            )
        out.print(f"policy: {self.folder / 'policy.pt'}")
        write_json(self.json, RunFolder(self.folder).read_metrics())

    def _check(self) -> None:
        check_seed(self.seed)
        check_name(self.folder)
        check_seconds(self.seconds, "to train")
        check_count(self.iterations, "iterations", "to train")
        if self.validate < 0:
            raise IrgymError(f"there are no {self.validate} programs to validate on: give 0 or more")
        check_most(self.validate, "programs to validate on")
        if self.screen is not None:
            check_share(self.screen)


def _line(metrics: "Metrics") -> str:
    """Return one line of progress."""

    def number(value: float | None, form: str) -> str:
        return "-" if value is None else format(value, form)

    return (
        f"iteration {metrics.iteration:4d}  {metrics.seconds:6.0f} s"
        f"  reward {number(metrics.reward_mean, '+.3f')}"
        f"  speedup {number(metrics.speedup, '.2f')}  entropy {number(metrics.entropy, '.2f')}"
        f"  policy loss {number(metrics.policy_loss, '+.4f')}  value loss {number(metrics.value_loss, '.4f')}"
        f"  {metrics.evaluations_per_s:.0f} evaluations/s"
    )
