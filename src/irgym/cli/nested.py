"""Commands that take another command: `irgym submit train loops --run runs/a`."""

from collections.abc import Collection, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, cast, get_args, get_origin

from irgym.base.errors import IrgymError


def split(kind: type[Any], words: Sequence[str], commands: Collection[str]) -> tuple[list[str], list[str]]:
    """Return the options before the inner command, and the inner command with its options.

    Args:
        kind: Class of the outer command.
        words: The command line after its name.
        commands: Names of all commands; values of an option that takes several end at one.
    """
    kinds = dict(_kinds(kind))
    place = 0
    while place < len(words) and words[place].startswith("--"):
        option, equals, _ = words[place].partition("=")
        name = option.removeprefix("--").replace("-", "_")
        place += 1
        if equals or name == "help" or kinds.get(name.removeprefix("no_")) is bool:
            continue
        if get_origin(kinds.get(name)) is tuple:
            while place < len(words) and words[place] not in commands and words[place][:2] != "--":
                place += 1
        else:
            place += 1
    return list(words[:place]), list(words[place:])


def _kinds(kind: type[Any]) -> list[tuple[str, Any]]:
    """Return the options of a command with their types, those of requests too."""
    found: list[tuple[str, Any]] = []
    for option in fields(kind):
        inner: Any = get_args(option.type)[0] if hasattr(option.type, "__metadata__") else option.type
        found += _kinds(cast(type[Any], inner)) if is_dataclass(inner) else [(option.name, inner)]
    return found


def check_inner(words: Sequence[str], outer: str, allowed: Sequence[str]) -> None:
    """Make sure that an inner command is one of some.

    Raises:
        IrgymError: There is none, or it is another.
    """
    if not words or words[0] not in allowed:
        found = f"{words[0]!r} is none of them" if words else "none is given"
        raise IrgymError(
            f"{outer} takes a command ({', '.join(allowed)}), and {found}: write it after the options"
        )


def begun_by(command: Any, marker: Path) -> list[Path]:
    """Return the files that exist once a command has begun, so that it can resume; none where it cannot.

    Args:
        command: The command.
        marker: A file made as the command starts, for those that leave none at known places.
    """
    from irgym.policies.run_folder import RunFolder

    requests = [getattr(command, option.name) for option in fields(command)]
    resumable = [request for request in requests if is_dataclass(request) and hasattr(request, "resume")]
    if not resumable or any(cast(Any, request).resume for request in resumable):
        return []
    request = cast(Any, resumable[0])
    if hasattr(command, "folder"):
        folder = RunFolder(command.folder)
        return [folder.checkpoint.absolute(), folder.previous.absolute()]
    if hasattr(request, "run_folder"):
        kept = [request.json, request.run_folder and RunFolder(request.run_folder).comparison]
        return [file.absolute() for file in kept if file is not None]
    return [] if request.quick else [marker]
