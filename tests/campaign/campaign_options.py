"""Bad values for every option of every command, read off the commands' own definitions.

A new option is tried by itself: whatever its type, each of the type's bad values must be refused. Values that
are bad for most options and right for one are listed in `RIGHT`.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, is_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

from tyro.conf import Positional, Suppress

from irgym.cli.commands import OUTER, SUMMARIES, command_class
from irgym.cli.configuration import with_config
from irgym.cli.words import REPEATED

PROGRAM = "passes://mlp/40-0-20-0-0-7-0-0"

BASES: dict[str, tuple[str, ...]] = {
    "envs": (),
    "programs": ("passes",),
    "tune": (PROGRAM, "--search", "random", "--evaluations", "4"),
    "replay": (PROGRAM, "fold0 fold2"),
    "show": (PROGRAM, "fold0 fold2"),
    "history": (PROGRAM,),
    "train": ("passes", "--run", "new", "--iterations", "1", "--set", "episodes=2", "hidden=8"),
    "imitate": (
        *("passes", "--out", "new.pt", "--searched", "1", "--programs", "0", "--evaluations", "4"),
        *("--set", "epochs=1", "hidden=8"),
    ),
    "evaluate": ("{inputs}/run", "--limit", "1"),
    "compare": ("passes", "--methods", "base", "--limit", "1"),
    "report": ("{inputs}/run", "--out", "new.html"),
    "check": ("keeping", "--walks", "1", "--steps", "1"),
    "cache": ("stats",),
    "submit": ("--dry-run", "programs", "passes"),
    "sweep": ("--dry-run", "--sweep", "lr=1,2", "train", "passes", "--run", "new"),
    "worker": ("dask://127.0.0.1:1", "--timeout-s", "0.1"),
    "farm": ("status", "dask://127.0.0.1:1"),
}
"""A right use of each command that takes no time; the last two find no farm there."""

NO_FARM = ("worker", "farm")

LONG = "n" * 5000
HUGE = str(10**30)

WHOLE = ("", "x", "1.5", "nan", "inf", "1e3", "0x10", "-1", "0", HUGE, f"-{HUGE}", "1,2", " ")
REAL = ("", "x", "nan", "inf", "-inf", "1e999", "-1", "0", "-0.0", "1e300", "1,5")
WORD = (
    "",
    " ",
    "nonsense",
    "-",
    "1",
    "[/b]",
    "[red]x[/red]",
    "é\u202ename",
    "a\nb",
    LONG,
    "%s{0}\\",
    ",",
    ":",
    "a=b",
)
READ = (
    *("", " ", ".", "/", "missing", "{inputs}/folder", "{inputs}/fifo", "{inputs}/garbage", "{inputs}/latin"),
    *("/dev/null", "/dev/full", "missing/[/b]", "é\u202ename", "name-\udcff", LONG, "n" * 300),
)
WRITTEN = (
    *("", "{inputs}/folder", "missing/file", "{inputs}/garbage/file", LONG),
    *("/proc/nowhere/file", "missing/[/b]", "missing/name-\udcff", "{inputs}/garbage/[/b]"),
)
CHOICE = ("", "nonsense", "[/b]", "TRAIN", "\u00e9")

BAD: dict[Any, tuple[str, ...]] = {int: WHOLE, float: REAL, str: WORD, Path: WRITTEN, Literal: CHOICE}

READS = {
    *(("evaluate", "folder"), ("report", "folder")),
    *((command, "--config") for command in SUMMARIES),
}
"""Paths that a command reads; the others it writes."""


class Option(NamedTuple):
    """An option of a command.

    Attributes:
        command: The command.
        name: The option with its dashes, or a positional's field name.
        type: `int`, `float`, `bool`, `str`, `Path` or `Literal`.
        position: A positional's place.
        many: Whether it takes several values.
    """

    command: str
    name: str
    type: Any
    position: int | None
    many: bool


@dataclass(frozen=True)
class Row:
    """A command line and what is expected of it.

    Attributes:
        arguments: The command line; `{inputs}` stands for the folder of files to read.
        words: Where the command must be refused, what the sentence on stderr says, one of these at least;
            None: it must do its work.
        why: What the row tries, for its name.
        output: What a command that does its work prints, all of these.
    """

    arguments: tuple[str, ...]
    words: tuple[str, ...] | None
    why: str
    output: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The row's name in the output of pytest."""
        return ascii(f"{self.arguments[0] if self.arguments else '-'} {self.why}")[1:-1][:120]


def options() -> Iterator[Option]:
    """Yield all options of all commands."""
    for command in SUMMARIES:
        kind = with_config(command_class(command))
        position = 0
        for word, hint in _fields(kind):
            extras = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
            hint = get_args(hint)[0] if extras else hint
            name = next((extra.name for extra in extras if getattr(extra, "name", None)), None)
            plain = (
                [part for part in get_args(hint) if part is not type(None)]
                if not isinstance(hint, type)
                else [hint]
            )
            many = get_origin(hint) is tuple
            plainest = Literal if _literal(hint) else plain[0]
            positional = POSITIONAL in extras
            dashed = word if positional else f"--{(name or word).replace('_', '-')}"
            yield Option(command, dashed, plainest, position if positional else None, many)
            position += positional


def _fields(kind: type) -> Iterator[tuple[str, Any]]:
    """Yield the names and types of options, those of groups that commands share among them."""
    for name, hint in get_type_hints(kind, include_extras=True).items():
        bare, *extras = get_args(hint) if get_origin(hint) is Annotated else (hint,)
        if HIDDEN in extras:
            continue
        if is_dataclass(bare):
            yield from _fields(bare)
        else:
            yield name, hint


HIDDEN = get_args(Suppress[int])[1]
"""Marks fields of requests that are no options."""

POSITIONAL = get_args(Positional[int])[1]
"""Marks fields that have no name on the command line, only a place."""


def _literal(hint: Any) -> bool:
    return get_origin(hint) is Literal or any(get_origin(part) is Literal for part in get_args(hint))


def without(option: Option) -> list[str]:
    """Return the words of `BASES` without an option and its values."""
    base = list(BASES[option.command])
    if option.name in base:
        begin = base.index(option.name)
        ends = (n for n in range(begin + 1, len(base)) if base[n].startswith("--") or base[n] in SUMMARIES)
        end = next(ends, len(base))
        del base[begin:end]
    return base


def line(option: Option, value: str) -> tuple[str, ...]:
    """Return the command line of `BASES` with one option set to a value, instead of what it has there."""
    if option.position is not None:
        base = list(BASES[option.command])
        base[option.position] = value
        return (option.command, *base)
    # Only so can a value begin with a dash; several values cannot be given so.
    given = (option.name, value) if option.many else (f"{option.name}={value}",)
    return with_given(option, given)


def with_given(option: Option, given: tuple[str, ...]) -> tuple[str, ...]:
    """Return the command line of `BASES` with some words in place of an option; before an inner command."""
    base = without(option)
    return (option.command, *given, *base) if option.command in OUTER else (option.command, *base, *given)


RIGHT = {
    ("--seed", "0"),
    ("--validate", "0"),
    ("--gpus", "0"),
    *(("programs --holdout", share) for share in ("0", "-0.0")),
    ("imitate --programs", "0"),
    ("replay schedule", ""),
    *((f"{command} schedule", blank) for command in ("replay", "show") for blank in (",", " ")),
    ("show schedule", ""),
    ("compare --trace", "{inputs}/folder"),
    ("train --run", "missing/[/b]"),
    ("train --run", "missing/file"),
}
"""Values of `BAD` that are right for some option: pairs of `command --option` or `--option`, and value."""

NOWHERE = {"worker": "no scheduler", "farm": "no farm"}
"""Messages of commands with right options, as nothing listens there."""

HEADLINES = ("ppo on ", "no scheduler at ")
"""First output of commands that fail only later."""

JOBS = ("--name", "--queue", "--account", "--constraint")

UNTRIED = {
    **{(command, name): ("nonsense", "1") for command in ("submit", "sweep") for name in JOBS},
    ("sweep", "--sweep"): ("a=b",),  # the runs check names
    **{(command, "--time"): ("1",) for command in ("submit", "sweep")},
    **{(command, "--folder"): WRITTEN[1:] for command in ("submit", "sweep")},  # a dry run writes nothing
    ("worker", "--name"): WORD,  # any name will do
    ("show", "--actions"): WORD,  # what is shown has no episodes
    ("worker", "--timeout-s"): ("inf", "1e999", "1e300"),  # waits, as it was told
    ("train", "--run"): ("{inputs}/folder",),  # a folder is right
    ("compare", "--run-folder"): ("{inputs}/folder",),
}
"""Values that are not tried."""


def rows() -> Iterator[Row]:
    """Yield a row for each bad value of each option, and for each that may stand once given twice.

    Commands share options (`irgym.Measuring` and the other requests), each with one check. The first command
    that has an option is given all bad values, the others two.
    """
    seen: set[tuple[str, Any]] = set()
    for option in options():
        values = READ if (option.command, option.name) in READS else BAD.get(option.type, ("maybe",))
        if option.position is None and (option.name, option.type) in seen:
            values = values[:2]
        untried = UNTRIED.get((option.command, option.name), ())
        values = [value for value in values if value not in untried]
        if values:
            seen.add((option.name, option.type))
        for value in values:
            names = (f"{option.command} {option.name}", option.name)
            right = any((name, value) in RIGHT for name in names)
            why = f"{option.name} = {value[:40]!r}"
            yield Row(line(option, value), None if right else tuple(words(option, value)), why)
        if option.position is None and option.name not in REPEATED:
            yield twice(option)


def words(option: Option, value: str) -> Iterator[str]:
    """Yield what the sentence may call a bad value: one of these must be in it."""
    yield option.name.strip("-").removesuffix("s")
    shown = (letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in value)
    yield "".join(shown)[:20] or "''"
    if option.type in (int, float):
        with suppress(ValueError):
            yield f"{float(value):g}"
    if option.name == "schedule":
        yield "action"
    if (option.command, option.name) in READS:
        yield "nothing to report"
    if option.type is Path:
        yield "cannot be written"
    if option.command in NOWHERE:
        yield NOWHERE[option.command]


def twice(option: Option) -> Row:
    """Return a row that gives an option two times."""
    value = {bool: (), int: ("1",), float: ("1",), Literal: ("train",)}.get(option.type, ("a",))
    given = (option.name, *value) * 2
    return Row(with_given(option, given), (f"{option.name} is given twice",), f"{option.name} twice")
