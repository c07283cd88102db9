"""Which environments there are, which of them a program belongs to, and its task there."""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from irgym.base.errors import PluginError, ProgramError, explained
from irgym.base.reading import content_of_program
from irgym.base.registry import Registry
from irgym.core.uri import is_file

if TYPE_CHECKING:
    from irgym.core.environment import Environment
    from irgym.core.task import Task

_T = TypeVar("_T")
_P = TypeVar("_P")

ENVIRONMENTS: "Registry[Environment]" = Registry(
    kind="environment",
    group="irgym.environments",
    builtin={
        "loops": "irgym.envs.loops.environment:LOOPS",
        "hlo": "irgym.envs.hlo.environment:HLO",
        "graph": "irgym.envs.graph.environment:GRAPH",
        "graph-taso": "irgym.envs.graph.environment:GRAPH_TASO",
        "cse": "irgym.envs.cse.environment:CSE",
        "superpmi": "irgym.envs.cse.superpmi.environment:SUPERPMI",
        "llvm": "irgym.envs.llvm.environment:LLVM",
        "linalg": "irgym.envs.linalg.environment:LINALG",
        "linalg-swaps": "irgym.envs.linalg.environment:LINALG_SWAPS",
        "linalg-scores": "irgym.envs.linalg.environment:LINALG_SCORES",
        "linalg-flat": "irgym.envs.linalg.environment:LINALG_FLAT",
    },
    fault="irgym.core.environment:environment_fault",
)


def environment_of(uri: str) -> "Environment":
    """Return the environment that a URI names by its scheme.

    Raises:
        ProgramError: The URI has no scheme, or no environment has that name.
    """
    scheme, colon, _ = uri.partition(":")
    if not colon or scheme not in ENVIRONMENTS:
        raise ProgramError(
            f"{uri!r} is not a program: name a file, or a URI that begins with one of "
            + ", ".join(f"{name}:" for name in ENVIRONMENTS.names())
            + ", as in loops://mm/128x128x128"
        )
    return ENVIRONMENTS.load(scheme)


def locate(
    program: object, inputs: Sequence[Any] = (), environment: str | None = None
) -> "tuple[Environment, str]":
    """Return the environment of a program, and its URI.

    Args:
        program: A URI; the path of a file, whose suffix and content tell the environment, with what it leaves
            open bound after a question mark (`model.onnx?batch=1`), or a part of it (`code.c#f`); or an
            object that an environment takes (`Environment.accepts`).
        inputs: What an object is called with.
        environment: Name of the environment that is to take an object; by default the first one that does, in
            the order of `ENVIRONMENTS`.

    Raises:
        ProgramError: It is no program, could be one of several environments, or is none of the one that is
            named.
        IrgymError: It is one that cannot be read, or there is no environment of that name.
    """
    if isinstance(program, str | os.PathLike):
        if inputs:
            raise ProgramError(f"{program} names its inputs: give inputs only with a module or a function")
        found, uri = _located(cast("str | os.PathLike[str]", program))
        if environment not in (None, found.name):
            raise ProgramError(f"{uri} is a program of {found.name}: name no other environment")
        return found, uri
    asked = _environments() if environment is None else [ENVIRONMENTS.load(environment)]
    for taker in asked:
        uri = taker.program_of(program, inputs)
        if uri is not None:
            return taker, uri
    named = [home for home in _environments() if environment in (None, home.name)]
    accepted = dict.fromkeys(home.accepts for home in named if home.accepts)
    kind = type(program).__name__
    what = "no program" if environment is None else f"no program of {environment}"
    raise ProgramError(f"an object of type {kind} is {what}: give {', or '.join(['a URI', *accepted])}")


def takers(environment: "Environment") -> list[str]:
    """Return the names of all environments that take objects of the same kind, in the order of asking."""
    return [home.name for home in _environments() if home.accepts == environment.accepts]


def _located(program: "str | os.PathLike[str]") -> "tuple[Environment, str]":
    """Return the environment and the URI of a file or a URI."""
    if not isinstance(program, str):
        return _environment_of_file(Path(program))
    if program.partition(":")[0] in ENVIRONMENTS:
        return environment_of(program), program
    file = program if is_file(Path(program)) else re.split("[?#]", program, maxsplit=1)[0]
    meant = ":" not in file and bool(Path(file).suffix)
    if not is_file(Path(file)) and not meant:
        return environment_of(program), program
    found, uri = _environment_of_file(Path(file))
    return found, uri + program[len(file) :]


def _environment_of_file(path: Path) -> "tuple[Environment, str]":
    if not is_file(path):
        raise ProgramError(f"there is no file {path}: check the path, or give a URI")
    found = [
        (environment, uri) for environment in _environments() if (uri := environment.program_of(path, ()))
    ]
    if len(found) != 1:
        what = "could be a program of several environments" if found else "is of no environment that knows it"
        raise ProgramError(f"{path} {what}: name the environment, as in linalg:{path} or hlo:{path}")
    return found[0]


def _environments() -> "Iterator[Environment]":
    """Yield the environments that can be imported; the packages of the others concern no program of ours."""
    for name in ENVIRONMENTS.names():
        try:
            environment = ENVIRONMENTS.load(name)
        except PluginError:
            continue  # `irgym envs` tells
        yield environment


def mentions(path: Path, *words: str) -> bool:
    """Say whether a file's content has one of some words, for `Environment.program_of`.

    Raises:
        ProgramError: It cannot be read, or is too large for a text.
    """
    content = content_of_program(path)
    return any(word.encode() in content for word in words)


def begins(path: Path, *beginnings: bytes) -> bool:
    """Say whether a file's content begins with one of some, for `Environment.program_of`.

    Raises:
        StorageError: It cannot be read.
    """
    with explained(f"{path} cannot be read", "check its permissions"), path.open("rb") as file:
        return file.read(max(map(len, beginnings))).startswith(beginnings)


def task_of(
    environment: "Environment",
    uri: str,
    backend: str | None = None,
    target: str | None = None,
    objective: str | None = None,
) -> "Task[Any]":
    """Return the task of a URI; back end, target and objective are the environment's own unless named.

    Raises:
        IrgymError: There is no such program, back end, target or objective.
    """
    check_objective(environment, objective)
    return environment.task(uri, backend, target, objective)


def tasks_of(
    programs: Iterable[_P], task_of_program: Callable[[_P], _T], refused: Callable[[_P, ProgramError], None]
) -> Iterator[_T]:
    """Yield the tasks of programs one after the other, but for those that are none.

    Args:
        programs: URIs, or what else names programs.
        task_of_program: Opens one.
        refused: Told of each that cannot be opened, and why: other targets have other functions.
    """
    for program in programs:
        try:
            task = task_of_program(program)
        except ProgramError as error:
            refused(program, error)
        else:
            yield task


def check_objective(environment: "Environment", objective: str | None) -> None:
    """Make sure that an environment has an objective, if one is named.

    Raises:
        IrgymError: It has none of that name; the message lists those that it has.
    """
    if objective is not None:
        environment.objective(objective)
