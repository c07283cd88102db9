"""irgym: reinforcement learning and search for compiler optimisation, on real compilers.

`tune`, `replay`, `history`, `compare`, `imitate`, `train` and `evaluate` do the same as the commands of these
names, and return what those print; so do `tune_parts` for files and `evaluate_snapshots` for a training.
Requests such as `Searching` and `Measuring` hold their options. `task`, `environments` and `load_policy` give
programs and policies to work with; `check_environment`, `check_task` and `check_agent` check the rules that
environments and agents keep. Each is imported on first use. `import irgym` also registers the environments
with Gymnasium, as `irgym/Loops-v0` for `loops`; the command `irgym` does not, for it would only wait for
Gymnasium.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from irgym.base.interrupts import leave_when_interrupted, started_as_child, started_as_command
from irgym.base.limits import leave_if_too_narrow

if started_as_command():
    leave_when_interrupted()  # before the imports that take time
    leave_if_too_narrow()
elif not started_as_child():
    from irgym.gym.registration import register_all

    register_all()

from irgym.version import __version__

if TYPE_CHECKING:
    from irgym.api.comparing import compare
    from irgym.api.evaluation import evaluate
    from irgym.api.imitation import imitate
    from irgym.api.parts import tune_parts
    from irgym.api.programs import environments, load_policy, task
    from irgym.api.replaying import history, replay
    from irgym.api.requests import Comparing, Evaluating, Imitating, Measuring, Searching, Training
    from irgym.api.selecting import register_dataset
    from irgym.api.snapshots import evaluate_snapshots
    from irgym.api.training import train
    from irgym.api.tuning import tune
    from irgym.base.errors import IrgymError
    from irgym.conformance.agents import check_agent
    from irgym.conformance.checking import check_environment, check_task
    from irgym.core.datasets import DatasetSpec
    from irgym.judging.result import Tuned
    from irgym.sessions import onnx_session

__all__ = [
    "Comparing",
    "DatasetSpec",
    "Evaluating",
    "Imitating",
    "IrgymError",
    "Measuring",
    "Searching",
    "Training",
    "Tuned",
    "__version__",
    "check_agent",
    "check_environment",
    "check_task",
    "compare",
    "environments",
    "evaluate",
    "evaluate_snapshots",
    "history",
    "imitate",
    "load_policy",
    "onnx_session",
    "register_dataset",
    "replay",
    "task",
    "train",
    "tune",
    "tune_parts",
]

_PLACES = {
    "IrgymError": "irgym.base.errors",
    "Tuned": "irgym.judging.result",
    "check_agent": "irgym.conformance.agents",
    "check_environment": "irgym.conformance.checking",
    "check_task": "irgym.conformance.checking",
    "compare": "irgym.api.comparing",
    "environments": "irgym.api.programs",
    "evaluate": "irgym.api.evaluation",
    "evaluate_snapshots": "irgym.api.snapshots",
    "Comparing": "irgym.api.requests",
    "DatasetSpec": "irgym.core.datasets",
    "Evaluating": "irgym.api.requests",
    "Imitating": "irgym.api.requests",
    "Measuring": "irgym.api.requests",
    "Searching": "irgym.api.requests",
    "Training": "irgym.api.requests",
    "history": "irgym.api.replaying",
    "imitate": "irgym.api.imitation",
    "load_policy": "irgym.api.programs",
    "onnx_session": "irgym.sessions",
    "register_dataset": "irgym.api.selecting",
    "replay": "irgym.api.replaying",
    "task": "irgym.api.programs",
    "train": "irgym.api.training",
    "tune": "irgym.api.tuning",
    "tune_parts": "irgym.api.parts",
}
"""The modules that the names come from."""


def __getattr__(name: str) -> Any:
    """Import a name on first use."""
    if name == "__version__":
        from importlib.metadata import version

        value: Any = version("irgym")
    elif name in _PLACES:
        value = getattr(import_module(_PLACES[name]), name)
    else:
        raise AttributeError(f"module 'irgym' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
