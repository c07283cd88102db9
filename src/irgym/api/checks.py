"""Checks of arguments that several functions take, made before any work is done."""

import os
from collections.abc import Sequence
from numbers import Integral, Real
from pathlib import Path
from typing import cast

from irgym.base.errors import IrgymError, StorageError
from irgym.base.files import check_writable
from irgym.measure.target import target_named
from irgym.search.budget import Budget

DEFAULT_SECONDS = 10.0
"""Time of a search where neither time nor evaluations are given."""

TUNING_SECONDS = 20.0
"""Time of `tune`, its checks included, likewise."""

QUICK_SECONDS = 8.0
"""The same without a search; most programs take less."""


MOST = 10**9
"""Greatest number and greatest time in seconds that can be given: more is a slip of the pen."""


def check_number(number: object, what: str) -> None:
    """Make sure that a number is given, or None.

    Raises:
        IrgymError: Something else is.
    """
    if number is not None and (isinstance(number, bool) or not isinstance(number, Real)):
        raise IrgymError(f"{what} must be a number, not {number!r}: give one")


def check_whole(number: object, what: str, least: int | None = None, refusal: str = "") -> None:
    """Make sure that a whole number is given, or None, and that it makes sense.

    Args:
        number: What is given.
        what: What it counts.
        least: The least number that will do.
        refusal: What to say of a lesser one.

    Raises:
        IrgymError: It is something else, too small, or so large that it can only be a mistake.
    """
    if number is None:
        return
    if isinstance(number, bool) or not isinstance(number, Integral):
        raise IrgymError(f"{what} must be a whole number, not {number!r}: give one")
    if least is not None and int(number) < least:
        raise IrgymError(refusal)
    check_most(int(number), what)


def texts_of(texts: object, what: str) -> tuple[str, ...]:
    """Return texts that are given as a list or tuple, or as one of them alone.

    Raises:
        IrgymError: Something else is given.
    """
    if isinstance(texts, str):
        return (texts,)
    given = cast(Sequence[object], texts) if isinstance(texts, list | tuple) else (texts,)
    for text in given:
        if not isinstance(text, str):
            raise IrgymError(f"{what} must be texts, not {text!r}: give their names")
    return cast(tuple[str, ...], tuple(given))


def path_of(path: object, what: str) -> Path:
    """Return a path that is given as such or as a text.

    Raises:
        IrgymError: Something else is.
    """
    if not isinstance(path, str | os.PathLike):
        raise IrgymError(f"{what} must be given as a path, not as {path!r}: give one")
    return Path(cast("str | os.PathLike[str]", path))


def budget(evaluations: int | None, seconds: float | None, default_s: float = DEFAULT_SECONDS) -> Budget:
    """Return what a search may spend: so many evaluations, so many seconds, or else `default_s`.

    Raises:
        IrgymError: One of them is too small or no number.
    """
    check_whole(evaluations, "evaluations")
    check_number(seconds, "seconds")
    if evaluations is None and seconds is None:
        seconds = default_s
    limits = Budget(evaluations, seconds)
    check_most(seconds, "seconds")
    return limits


def check_most(number: float | None, what: str) -> None:
    """Make sure that a number is none that can only be a mistake.

    Raises:
        IrgymError: It is.
    """
    if number is not None and number > MOST:
        raise IrgymError(f"{number:g} {what} are too many: give at most {MOST}")


def check_seconds(seconds: float | None, purpose: str) -> None:
    """Make sure that some time is left for what it is meant for, and that it ends.

    Raises:
        IrgymError: It is too short, or does not end.
    """
    check_number(seconds, "seconds")
    if seconds is not None and not seconds > 0:
        raise IrgymError(f"{seconds:g} seconds are not enough {purpose}: give more than 0")
    check_most(seconds, "seconds")


def check_count(number: int | None, what: str, purpose: str) -> None:
    """Make sure that there is at least one of something.

    Raises:
        IrgymError: There is none, or so many that it can only be a mistake.
    """
    check_whole(number, what, 1, f"{number} {what} are too few {purpose}: give at least 1")


def check_file(path: Path | None) -> None:
    """Make sure that a file can be written at a place, if one is given.

    Raises:
        StorageError: Its folder does not exist or is not writable, or the path is a folder.
    """
    if path is not None:
        check_writable(path)


def check_name(folder: Path) -> None:
    """Make sure that a folder's name is text, as TensorBoard asks.

    Raises:
        StorageError: It has bytes that are no UTF-8.
    """
    try:
        str(folder).encode()
    except UnicodeEncodeError as error:
        raise StorageError(
            f"{folder} has bytes in its name that are no UTF-8: choose another name"
        ) from error


def targets_named(text: str | None) -> list[str | None]:
    """Return the targets that a text names, separated by commas; None, for this machine, where there is none.

    Raises:
        IrgymError: There is no such target.
    """
    if text is None:
        return [None]
    # What is no text, `check_options` refuses.
    targets = text.split(",") if isinstance(text, str) else [text]  # pyright: ignore[reportUnnecessaryIsInstance]
    for target in targets:
        check_options(target=target)
    return list(dict.fromkeys(targets))


def check_options(*, seed: int = 0, limit: int | None = None, **texts: str | None) -> None:
    """Make sure that options which several functions take make sense.

    Args:
        seed: Seed of random generators.
        limit: Greatest number of programs to keep, if any are to be left out.
        texts: All other options, None where they are not given. A `target` must exist, also where costs
            depend on none.

    Raises:
        IrgymError: One is of another type or out of range, or there is no such target.
    """
    if isinstance(seed, bool) or not isinstance(seed, Integral):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise IrgymError(f"a seed must be a whole number, not {seed!r}: give one")
    if not 0 <= seed < 2**63:
        raise IrgymError(f"a seed of {seed} is out of range: give 0 or more, below 2^63")
    check_whole(limit, "programs to keep", 1, f"a limit of {limit} leaves no program: give at least 1")
    for name, text in texts.items():
        if text is not None and not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise IrgymError(f"{name} must be a text, not {text!r}: give its name")
    target = texts.get("target")
    if target is not None:
        target_named(target, runs=False)
