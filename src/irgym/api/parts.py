"""`irgym.tune_parts`: all programs of a file, such as its functions, tuned one after the other."""

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from irgym.api.checks import check_options
from irgym.api.requests import Measuring, Searching, checked
from irgym.api.tuning import Note, Tuning, say_nothing
from irgym.base.errors import IrgymError
from irgym.core.catalogue import locate
from irgym.policies.policy import Policy
from irgym.search.budget import SharedBudget

if TYPE_CHECKING:
    from irgym.judging.parts import TunedParts
    from irgym.judging.result import Tuned


def tune_parts(
    program: str | Path,
    *,
    policy: str | Path | Policy | None = None,
    seconds: float | None = None,
    seed: int = 0,
    searching: Searching = Searching(),
    measuring: Measuring = Measuring(),
    note: Note | None = None,
    done: "Callable[[TunedParts], None] | None" = None,
) -> "TunedParts":
    """Tune each part of a program that has several, such as the functions of a file.

    A part that cannot be tuned costs only itself: the result says why. The parts share time and evaluations:
    each gets an equal share of what those before it have left. An interrupt ends with the part that it meets,
    as in `tune`, and leaves the others as they are.

    Args:
        program: A URI or a file, such as `cse:code.c`.
        policy: As for `tune`, and so are the others.
        seconds: Time of the whole, checks included.
        seed: Seed of all random choices.
        searching: Options of the searches; `evaluations` is for all parts together.
        measuring: Objective, back end, target and farm.
        note: Called with a line of text when something new begins.
        done: Called after each part with the results so far.

    Raises:
        IrgymError: What is given makes no sense, the program has no parts, or none can be tuned.
    """
    limits = checked(searching, Searching).limits(seconds, policy)
    check_options(seed=seed)
    checked(measuring, Measuring)
    home, uri = locate(program)
    parts = home.parts(uri, measuring.target)
    if not parts:
        raise IrgymError(f"{uri} is one program and has no parts: tune it as a whole")
    from irgym.judging.parts import TunedParts

    whole = Tuning(home, measuring, searching, limits, policy, seed, note or say_nothing)
    left = SharedBudget(limits, len(parts))
    results: list[Tuned] = []
    failures: dict[str, str] = {}
    with whole.bench() as bench:
        for place, part in enumerate(parts, 1):
            started = time.monotonic()
            try:
                result = replace(whole, limits=left.share(), started=started).tune(bench, part)
            except IrgymError as error:
                failures[part] = str(error)
                left.spend(seconds=time.monotonic() - started)
                continue
            results.append(result)
            evaluations = 0 if result.search is None else result.search.evaluations
            left.spend(evaluations, time.monotonic() - started)
            if result.cut_short:
                failures |= dict.fromkeys(parts[place:], "the run was interrupted before its turn")
            if done is not None:
                done(TunedParts(uri, tuple(results), dict(failures), home))
            if result.cut_short:
                break
    if not results:
        raise IrgymError(f"no part of {uri} can be tuned: {next(iter(failures.values()))}")
    return TunedParts(uri, tuple(results), failures, home)
