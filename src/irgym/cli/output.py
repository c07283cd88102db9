"""What commands share: tables for people, JSON for programs, policies by name."""

import importlib.util
import json
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console, RenderableType
from rich.status import Status
from rich.text import Text

from irgym.core.environment import Environment
from irgym.core.errors import BackendError, IrgymError, StorageError
from irgym.core.files import write_file
from irgym.core.policy import Policy
from irgym.core.task import Task
from irgym.core.uri import is_file
from irgym.evaluate.basis import file_digest


class Output:
    """Where commands print what they found; as wide as its text needs when that is not a terminal.

    Text is shown as it is. Nothing in it is markup, as names of programs and paths may look like it; styles
    are named beside the text, or in a `rich.text.Text`. No command has another console.
    """

    def __init__(self) -> None:
        wide = None if Console().is_terminal else 160
        self._console = Console(markup=False, emoji=False, highlight=False, width=wide)

    def print(self, what: RenderableType, style: str | None = None) -> None:
        """Print text, or a table or another thing that rich can show; long lines of text stay whole."""
        self._console.print(what, style=style, soft_wrap=isinstance(what, str | Text))

    @contextmanager
    def status(self, text: str) -> Generator["StatusLine"]:
        """Show what is being done, while it is done and where that is a terminal."""
        with self._console.status(Text(text)) as status:
            yield StatusLine(status)


@dataclass(frozen=True)
class StatusLine:
    """What is being done."""

    _status: Status

    def update(self, text: str) -> None:
        """Show another text."""
        self._status.update(Text(text))


def console() -> Output:
    """Return where results are printed."""
    return Output()


def write_json(path: Path | None, data: Any) -> None:
    """Write data as JSON, whole or not at all; do nothing without a path.

    Raises:
        StorageError: The file cannot be written.
    """
    if path is not None:
        write_file(path, (json.dumps(data, indent=2) + "\n").encode())


def policy_path(environment: Environment, name: str) -> Path:
    """Return the file of a policy that ships, of a run folder, or the file itself.

    Raises:
        IrgymError: There is no such policy.
    """
    shipped = environment.policies()
    if name in shipped:
        return shipped[name]
    path = next((one for one in (Path(name) / "policy.pt", Path(name)) if is_file(one)), None)
    if path is None:
        raise IrgymError(
            f"there is no policy {name!r}: name a run folder"
            + (f", or one of {', '.join(shipped)}" if shipped else "")
        )
    return path


def identify_policy(environment: Environment, name: str) -> str:
    """Return a digest of a policy's file.

    Raises:
        IrgymError: There is no such policy, or it cannot be read.
    """
    path = policy_path(environment, name)
    try:
        return file_digest(path)
    except OSError as error:
        raise StorageError(f"{path} cannot be read ({error.strerror}): check its permissions") from error


def load_policy(environment: Environment, name: str, task: Task[Any]) -> Policy:
    """Return a policy that suits a task; one that was trained for other targets says so on stderr.

    Raises:
        IrgymError: There is no such policy, or it was trained on other actions or observations.
        BackendError: torch is not installed.
    """
    path = policy_path(environment, name)
    require_torch("a policy")
    from irgym.nets.policy import TorchPolicy

    policy = TorchPolicy.load(path)
    if task.target is not None and policy.targets and task.target.name not in policy.targets:
        print(
            f"irgym: the policy {name} was trained for {', '.join(policy.targets)}, not for "
            f"{task.target.name}: its schedules may be poor here",
            file=sys.stderr,
        )
    state = task.initial()
    policy.check(task.space, task.observe(state))
    # The first call is slow: torch prepares itself.
    policy.act([task.observe(state)], [task.mask(state)], None)
    return policy


def require_torch(purpose: str) -> None:
    """Make sure that torch can be imported.

    Raises:
        BackendError: It cannot.
    """
    if importlib.util.find_spec("torch") is None:
        raise BackendError(f"{purpose} needs torch: run pip install 'irgym[learn]'")
