"""The commands by name. Only the one that is called is imported: the others would keep it waiting."""

from collections.abc import Sequence
from dataclasses import fields, is_dataclass, make_dataclass, replace
from functools import reduce
from importlib import import_module
from types import UnionType
from typing import Annotated, Any, Protocol, Union, cast, get_args, get_origin

import tyro
from tyro.conf import subcommand

import irgym
from irgym.cli.configuration import configured, with_config
from irgym.cli.nested import split
from irgym.cli.words import check_words, together

SUMMARIES = {
    "envs": "List the environments, whether their back ends run here, and what to install if they do not.",
    "programs": "List the programs of a data set by URI, one a line, and the names of all data sets.",
    "show": "Show a program, and what each action of a schedule makes of it, without measuring.",
    "tune": "Find the best schedule for a program, check its results, and say how good it is.",
    "replay": "Apply a schedule to a program, check its results and measure it.",
    "history": "Show what `tune` found for a program on this machine: when, how, and the best schedule.",
    "imitate": "Train a policy to repeat what a search finds; `train --set start=FILE` goes on from it.",
    "train": "Train a policy on the training programs of a data set; show progress, keep checkpoints.",
    "evaluate": "Run a trained policy on every program of a split, greedily and without a search.",
    "compare": "Compare methods on the same programs, side by side: searches, policies, other libraries.",
    "report": "Write the HTML page of a run: one file that works offline.",
    "check": "Check on random walks that an environment keeps the rules that searches and learners rely on.",
    "cache": "Show what the cost cache holds, or empty it.",
    "submit": "Submit any command as a SLURM job, which resumes when it is started again.",
    "sweep": "Train with all combinations of some settings, here or as SLURM jobs; show means and intervals.",
    "worker": "Measure for the farm of a scheduler, on one core; join again after the scheduler was gone.",
    "farm": "Start the scheduler of a farm, where workers and runs meet; or show the workers of one.",
}
"""Summary of each command: the first line of its class, which is in the module of the command's name."""

OUTER = ("submit", "sweep")
"""Commands that take another command, in their field `words`."""


class Command(Protocol):
    """A command: its fields are its options."""

    def run(self) -> None:
        """Do it.

        Raises:
            IrgymError: The input is bad, or something that is needed is missing.
        """
        ...


def command_class(name: str) -> type[Command]:
    """Import and return a command's class, a dataclass whose fields are the options."""
    kind: type[Command] = getattr(import_module(f"irgym.cli.{name}"), name.capitalize())
    _with_unions(kind)
    return kind


def _with_unions(kind: Any) -> None:
    """Write `X | None` as `Optional[X]` in the annotations of a dataclass and of the requests in it.

    For the former, tyro asks typeguard, whose import takes a tenth of a second.
    """
    for name, annotation in kind.__annotations__.items():
        kind.__annotations__[name] = _with_union(annotation)


def _with_union(annotation: Any) -> Any:
    if isinstance(annotation, UnionType):
        return Union[get_args(annotation)]  # noqa: UP007 (that is the point)
    if get_origin(annotation) is Annotated:
        inner, *metadata = get_args(annotation)
        return Annotated[(_with_union(inner), *metadata)]
    if is_dataclass(annotation):
        _with_unions(annotation)
    return annotation


def parsed(words: Sequence[str]) -> Command:
    """Return the command of a command line, with its options.

    Raises:
        IrgymError: An option is given twice, or nothing.
        SystemExit: Help or the version was asked for, or the words are not understood; what there is to say
            was printed.
    """
    if list(words) == ["--version"]:
        print(f"irgym {irgym.__version__}")
        raise SystemExit(0)
    if not words or words[0] not in SUMMARIES:
        whole = bool(words) and words[0].startswith("--tyro-")  # completion of shells knows all options
        tyro.cli(_choice(whole), prog="irgym", description=_DESCRIPTION, args=words)
        raise AssertionError(f"{words[:1]} is no command, and was taken for one")
    kind = with_config(command_class(words[0]))
    own, inner = split(kind, words[1:], SUMMARIES) if words[0] in OUTER else (list(words[1:]), [])
    check_words(own, _many(kind))
    arguments, defaults = configured(words[0], kind, together(own))
    # All help is in docstrings: tyro would tokenise the source for comments, for a third of its time.
    command: Any = tyro.cli(
        kind,
        prog=f"irgym {words[0]}",
        args=arguments,
        default=defaults,
        config=(tyro.conf.HelptextFromCommentsOff,),
    )
    return replace(command, words=tuple(inner)) if inner else command


_DESCRIPTION = "Reinforcement learning and search for compiler optimisation, on real compilers."


def _choice(whole: bool) -> Any:
    """Return all commands, with their options or without, as a type for tyro."""
    names = [
        Annotated[
            command_class(name) if whole else make_dataclass(name, ()), subcommand(name, description=summary)
        ]
        for name, summary in SUMMARIES.items()
    ]
    return reduce(lambda first, second: first | second, cast(list[Any], names))


def _many(kind: Any) -> frozenset[str]:
    """Return the options that take several values, those of requests too."""
    found: set[str] = set()
    for option in fields(kind):
        inner = get_args(option.type)[0] if get_origin(option.type) is Annotated else option.type
        if is_dataclass(inner):
            found |= _many(inner)
        elif get_origin(inner) is tuple:
            found.add(f"--{option.name.replace('_', '-')}")
    return frozenset(found)
