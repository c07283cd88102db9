"""`irgym.task`, `irgym.environments` and `irgym.load_policy`: what there is to work with."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from irgym.api.checks import check_options, path_of
from irgym.base.errors import IrgymError, PluginError
from irgym.core.catalogue import ENVIRONMENTS, locate, task_of
from irgym.core.environment import BackendStatus, Environment
from irgym.core.task import Task
from irgym.measure.target import target_of
from irgym.search.policies import read_policy

if TYPE_CHECKING:
    from irgym.networks.policy import TorchPolicy


def task(
    program: object,
    *inputs: Any,
    environment: str | None = None,
    backend: str | None = None,
    target: str | None = None,
    objective: str | None = None,
) -> Task[Any]:
    """Return the task of a program: the transition system that searches and agents act in.

    Args:
        program: A URI such as `loops://mm/128x128x128`, the path of a file, or an object: a torch module or a
            JAX function, with `inputs`.
        inputs: What an object is called with; only shapes and types of elements matter.
        environment: Name of the environment that is to take an object; a torch module goes to `graph` unless
            `linalg` is named.
        backend: Back end; by default the preferred one that runs here.
        target: Target of code generation, such as x86-64-v3 (AVX2); by default this machine.
        objective: What is minimised; by default the environment's own objective.

    Raises:
        IrgymError: There is no such program, back end, target or objective.
    """
    check_options(environment=environment, backend=backend, target=target, objective=objective)
    found, uri = locate(program, inputs, environment)
    return task_of(found, uri, backend, target, objective)


def environment_named(name: str) -> Environment:
    """Return an environment.

    Raises:
        IrgymError: There is none of that name; the message lists those that exist.
    """
    if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise IrgymError(f"an environment is named by a text, not by {name!r}: give its name")
    return ENVIRONMENTS.load(name)


def load_policy(name: str | Path, environment: str | None = None, target: str | None = None) -> "TorchPolicy":
    """Return a trained policy.

    Args:
        name: A run folder, a policy's file, or the name of a policy that ships with `environment`, such as
            `default`.
        environment: Name of the environment.
        target: What is to be scheduled for, such as `x86-64-v3`; by default this machine. `default` may
            mean a different policy on each target.

    Raises:
        IrgymError: There is no such policy.
        BackendError: There is no such target, or torch is not installed.
    """
    check_options(target=target)
    return read_policy(
        name if isinstance(name, str) else path_of(name, "a policy"),
        None if environment is None else environment_named(environment),
        target_of(target, runs=False).name,
    )


@dataclass(frozen=True)
class EnvironmentStatus:
    """An environment, and what of it runs here.

    Attributes:
        name: Its name, which its URIs begin with.
        summary: One line.
        backends: Its back ends, the preferred first; of an environment of another package that cannot be
            used one named `-`, which says what is wrong.
    """

    name: str
    summary: str
    backends: tuple[BackendStatus, ...]


def environments() -> list[EnvironmentStatus]:
    """Return the environments, whether their back ends run here, and what to install if not."""
    hidden = [
        EnvironmentStatus(name, "", (_broken(sentence),)) for name, sentence in ENVIRONMENTS.hidden().items()
    ]
    return [*map(_status, ENVIRONMENTS.names()), *hidden]


def _status(name: str) -> EnvironmentStatus:
    try:
        environment = ENVIRONMENTS.load(name)
        return EnvironmentStatus(name, environment.summary, tuple(environment.backends()))
    except PluginError as error:
        broken = _broken(str(error))
    except Exception as error:
        if name in ENVIRONMENTS.builtin:
            raise
        broken = BackendStatus("-", False, f"it raised {type(error).__name__}: {error}", "mend its package")
    return EnvironmentStatus(name, "", (broken,))


def _broken(sentence: str) -> BackendStatus:
    """Return the back end of an environment that cannot be used, from a fault with its remedy."""
    what, _, remedy = sentence.rpartition(": ")
    return BackendStatus("-", False, what, remedy)
