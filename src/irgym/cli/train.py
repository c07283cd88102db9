"""`irgym train`."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro
from tyro.conf import Positional

from irgym.api.training import train
from irgym.cli.options import Measuring
from irgym.cli.output import console, write_json_to
from irgym.cli.settings import settings_of
from irgym.policies.run_folder import RunFolder

if TYPE_CHECKING:
    from irgym.agents.metrics import Metrics


@dataclass(frozen=True)
class Train:
    """Train a policy on the training programs of a data set; show progress, keep checkpoints."""

    environment: Positional[str]
    """Name of the environment."""
    folder: Annotated[Path, tyro.conf.arg(name="run")]
    """Folder for checkpoints, metrics (JSON lines, TensorBoard) and the policy."""
    agent: str | None = None
    """Learning algorithm, such as ppo, a2c, dqn or apex; by default the recipe's, or ppo."""
    recipe: str | None = None
    """Set-up of the training by name, such as scratch; other options given take precedence over it."""
    dataset: str | None = None
    """Name of a data set; by default the environment's own."""
    limit: int | None = None
    """Learn from this many of its training programs, evenly spread; by default from all."""
    seconds: float | None = None
    """Stop after this training time; the time before a resumption counts too."""
    iterations: int | None = None
    """Stop after this number of iterations in all; by default the agent's own number."""
    seed: int = 0
    """Seed of all random choices."""
    resume: bool = False
    """Continue the run in the folder exactly where its last checkpoint left it."""
    reward: str = "default"
    """Name of one of the environment's rewards."""
    observation: str | None = None
    """What the policy sees: a name, or several with commas between; by default the environment's."""
    measuring: Measuring = field(default_factory=Measuring)
    validate: int | None = None
    """Keep the policy that is best on this many training programs, acting greedily; 0 keeps the newest.

    The default is 0, or what the recipe says.
    Costs drift with the processor's clock, so the best of many validations may only be the luckiest.
    """
    screen: float | None = None
    """Measure only this share of the new programs of an iteration: those that a learned cost model prefers.

    Its predictions reward the others; they are neither recorded nor reported.
    """
    json: Path | None = None
    """Write the metrics of all iterations as JSON to this file at the end."""
    set: tuple[str, ...] = ()
    """Hyper-parameters of the agent as name=value, such as lr=3e-4 episodes=256."""

    def run(self) -> None:
        """Train, show progress, record."""
        out = console()
        train(
            self.environment,
            self.folder,
            self.agent,
            recipe=self.recipe,
            dataset=self.dataset,
            limit=self.limit,
            seconds=self.seconds,
            iterations=self.iterations,
            seed=self.seed,
            resume=self.resume,
            reward=self.reward,
            observation=self.observation,
            **self.measuring.arguments,
            validate=self.validate,
            screen=self.screen,
            hyperparameters=settings_of(self.set, self.agent or "the agent"),
            note=out.print,
            progress=lambda metrics: out.print(_line(metrics)),
        )
        folder = RunFolder(self.folder)
        out.print(f"policy: {folder.policy}")
        write_json_to(self.json, folder.read_metrics())


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
