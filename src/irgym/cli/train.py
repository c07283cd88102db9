"""`irgym train`."""

import shlex
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro
from tyro.conf import OmitArgPrefixes, Positional

from irgym.api.requests import Measuring, Training
from irgym.api.training import train_observed
from irgym.api.training_observer import TrainingObserver
from irgym.cli.output import console, write_json_to
from irgym.cli.settings import settings_of
from irgym.comparing.results import read_comparison
from irgym.core.catalogue import ENVIRONMENTS
from irgym.judging.units import gain_word
from irgym.policies.run_folder import RunFolder
from irgym.reporting.tables import table

if TYPE_CHECKING:
    from irgym.agents.metrics import Metrics


@dataclass(frozen=True)
class Train:
    """Train a policy on the training programs of a data set; show progress, keep checkpoints."""

    environment: Positional[str]
    """Name of the environment."""
    folder: Annotated[Path, tyro.conf.arg(name="run")]
    """Folder for checkpoints, metrics (JSON lines, TensorBoard) and the policy."""
    seconds: float | None = None
    """Stop after this training time; the time before a resumption counts too."""
    seed: int = 0
    """Seed of all random choices."""
    training: OmitArgPrefixes[Training] = field(default_factory=Training)
    measuring: OmitArgPrefixes[Measuring] = field(default_factory=Measuring)
    json: Path | None = None
    """Write the metrics of all iterations as JSON to this file at the end."""
    set: tuple[str, ...] = ()
    """Hyper-parameters of the agent as name=value, such as lr=3e-4 episodes=256."""

    def run(self) -> None:
        """Train, show progress, record."""
        out = console()
        gain = gain_word(ENVIRONMENTS.load(self.environment).objective(self.measuring.objective))
        settings = settings_of(self.set, self.training.agent or "the agent")
        with out.status("training") as status:
            train_observed(
                self.environment,
                self.folder,
                TrainingObserver(out.print, lambda metrics: out.print(_line(metrics, gain)), status.update),
                seconds=self.seconds,
                seed=self.seed,
                training=replace(self.training, hyperparameters=settings),
                measuring=self.measuring,
            )
        folder = RunFolder(self.folder)
        if self.training.compare_at_end is not None:
            comparison = read_comparison(folder.comparison)
            out.print("" if comparison is None else table(comparison))
        out.print(f"policy: {folder.policy}")
        out.print(f"next: irgym evaluate {shlex.quote(str(self.folder))}")
        write_json_to(self.json, folder.read_metrics())


def _line(metrics: "Metrics", gain: str) -> str:
    """Return one line of progress, with the word for what is gained."""

    def number(value: float | None, form: str) -> str:
        return "-" if value is None else format(value, form)

    return (
        f"iteration {metrics.iteration:4d}  {metrics.seconds:6.0f} s"
        f"  reward {number(metrics.reward_mean, '+.3f')}"
        f"  {gain} {number(metrics.speedup, '.2f')}  entropy {number(metrics.entropy, '.2f')}"
        f"  policy loss {number(metrics.policy_loss, '+.4f')}  value loss {number(metrics.value_loss, '.4f')}"
        f"  {metrics.evaluations_per_s:.0f} evaluations/s"
        + ("" if metrics.validation is None else f"  validation {metrics.validation:+.3f}")
        + ("" if metrics.eval_speedup is None else f"  test {gain} {metrics.eval_speedup:.2f}")
    )
