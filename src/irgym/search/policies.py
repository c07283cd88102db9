"""Policies by name: those that ship with an environment, those of run folders, and their files."""

import importlib.util
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from irgym.base.errors import BackendError, IrgymError, StorageError, UnsuitedPolicyError
from irgym.core.baseline import INSTALL_TORCH
from irgym.core.environment import DEFAULT, Environment, default_on
from irgym.core.limits import UNLIMITED, limited
from irgym.core.task import Task
from irgym.core.uri import is_file
from irgym.measure.store import content_digest
from irgym.policies.foreign import adapted, name_of
from irgym.policies.plain import PlainPolicy
from irgym.policies.policy import Policy
from irgym.policies.run_folder import RunFolder
from irgym.policies.sb3 import Sb3Policy
from irgym.policies.sb3_files import PREFIX, is_archive, load_archive, split_name

if TYPE_CHECKING:
    from irgym.networks.policy import TorchPolicy


class Policies(Protocol):
    """Source of policies for a comparison."""

    def load(self, name: str, task: Task[Any]) -> Policy:
        """Return the policy of a name that suits a task.

        Raises:
            UnsuitedPolicyError: It does not suit.
            IrgymError: There is none.
        """
        ...

    def identify(self, name: str, task: Task[Any]) -> str | None:
        """Return a digest of the policy that `load` returns; None if it has none."""
        ...


@dataclass(frozen=True)
class PolicyFiles:
    """The policies that ship with an environment, and those in files.

    Attributes:
        environment: Environment of the policies.
    """

    environment: Environment

    def load(self, name: str, task: Task[Any]) -> Policy:
        """Return the policy of a name that suits a task; see `load_policy`."""
        return load_policy(self.environment, name, task)

    def identify(self, name: str, task: Task[Any]) -> str:
        """Return a digest of the file of the policy that suits a task.

        Raises:
            IrgymError: There is no such policy, or it cannot be read.
        """
        path = policy_path(name, self.environment, _target(task))
        try:
            return content_digest(path.read_bytes())
        except OSError as error:
            raise StorageError(f"{path} cannot be read ({error.strerror}): check its permissions") from error


def policy_path(name: str | Path, environment: Environment | None, target: str | None = None) -> Path:
    """Return the file of a policy that ships, of a run folder, or the file itself.

    Args:
        name: Its name.
        environment: Where policies that ship are looked for.
        target: Name of the target; `DEFAULT` may mean a different policy there.

    Raises:
        IrgymError: There is no such policy.
    """
    shipped: Mapping[str, Path] = environment.policies() if environment is not None else {}
    if str(name).startswith(PREFIX):
        return Path(split_name(str(name))[0])
    if name == DEFAULT and target is not None and default_on(target) in shipped:
        return shipped[default_on(target)]
    if name in shipped:
        return shipped[str(name)]
    path = next((file for file in (RunFolder(Path(name)).policy, Path(name)) if is_file(file)), None)
    if path is None:
        ask = ", or say of which environment it is" if environment is None else ""
        raise IrgymError(
            f"there is no policy {str(name)!r}: name a run folder"
            + (f", or one of {', '.join(shipped)}" if shipped else ask)
        )
    folder = RunFolder(Path(name))
    if path == folder.policy and folder.untrained:
        raise IrgymError(
            f"the run in {name} has not finished an iteration, so its policy is untrained: train on (irgym "
            "train ... --resume), or name another run"
        )
    return path


def _target(task: Task[Any]) -> str | None:
    """Return the name of a task's target."""
    return None if task.target is None else task.target.name


def read_policy(
    name: str | Path, environment: Environment | None, target: str | None = None
) -> "TorchPolicy":
    """Return the policy of a name, without checking its actions; `target` is as in `policy_path`.

    Raises:
        IrgymError: There is no such policy.
        BackendError: torch is not installed.
    """
    path = policy_path(name, environment, target)
    require_torch("a policy")
    from irgym.networks.policy import TorchPolicy

    return TorchPolicy.load(path)


def policy_in(path: Path) -> "PlainPolicy | Sb3Policy | TorchPolicy":
    """Return the policy of a file, without torch where that suffices.

    Raises:
        StorageError: The file cannot be read.
        BackendError: It needs torch, which is not installed.
    """
    plain = PlainPolicy.load(path)
    return read_policy(path, None) if plain is None else plain


def load_policy(environment: Environment, name: str | Path, task: Task[Any]) -> Policy:
    """Return a policy that suits a task; one that was trained for other targets says so on stderr.

    Raises:
        UnsuitedPolicyError: It was trained on other actions or observations.
        IrgymError: There is no such policy.
        BackendError: It needs torch, which is not installed.
    """
    target = _target(task)
    path = policy_path(name, environment, target)
    if str(name).startswith(PREFIX) or is_archive(path):
        return load_archive(path, task, split_name(str(name))[1])
    policy = policy_in(path)
    if target is not None and policy.targets and target not in policy.targets:
        print(
            f"irgym: the policy {name} was trained for {', '.join(policy.targets)}, not for "
            f"{target}: its schedules may be poor here",
            file=sys.stderr,
        )
    check_suits(policy, task)
    if not isinstance(policy, PlainPolicy | Sb3Policy):
        # The first call is slow: torch prepares itself.
        state = task.initial()
        policy.act([task.observe(state, policy.observation)], [task.mask(state)], None)
    return policy


def check_suits(policy: "PlainPolicy | Sb3Policy | TorchPolicy", task: Task[Any]) -> None:
    """Make sure that a policy suits a task.

    Raises:
        UnsuitedPolicyError: It was trained on other actions or observations.
    """
    try:
        policy.check(task.space, task.observe(task.initial(), policy.observation))
    except IrgymError as error:
        raise UnsuitedPolicyError(str(error)) from error


def can_lead(environment: Environment, task: Task[Any]) -> bool:
    """Say whether a policy ships that can lead a search here: it may need torch.

    Raises:
        StorageError: The policy cannot be read.
    """
    if DEFAULT not in environment.policies():
        return False
    return has_torch() or PlainPolicy.load(policy_path(DEFAULT, environment, _target(task))) is not None


def policy_for(environment: Environment, policy: str | Path | Policy, task: Task[Any]) -> Policy:
    """Return a policy that suits a task, given as such or by its name; see `irgym.policies.foreign.adapted`.

    Raises:
        IrgymError: There is no such policy, or it is none, or was trained on other actions or observations.
        BackendError: torch is not installed.
    """
    if isinstance(policy, str | Path):
        return load_policy(environment, policy, task)
    return adapted(policy, task)


def limited_as(task: Task[Any], policy: Policy | None) -> Task[Any]:
    """Return a task within the limits that a policy was trained in; those that the task has take precedence.

    Raises:
        IrgymError: The policy's actions are none of the task.
    """
    return limited(task, getattr(policy, "limits", UNLIMITED))


def policy_name(policy: str | Path | Policy) -> str:
    """Return the name of a policy in results."""
    return str(policy) if isinstance(policy, str | Path) else name_of(policy)


def has_torch() -> bool:
    """Say whether torch is installed."""
    return importlib.util.find_spec("torch") is not None


def require_torch(purpose: str) -> None:
    """Make sure that torch can be imported.

    Raises:
        BackendError: It cannot.
    """
    if not has_torch():
        raise BackendError(f"{purpose} needs torch: run {INSTALL_TORCH}")
