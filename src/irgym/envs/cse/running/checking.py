"""Whether a function with some candidates shared computes what it computed before, bit for bit."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from typing import NoReturn

from irgym.core.cost import Validation
from irgym.envs.cse.running.execution import CALL_S, outcomes
from irgym.envs.cse.running.harness import External, Harness, known_in
from irgym.envs.cse.running.memory import Image
from irgym.envs.cse.running.world import Found, World
from irgym.envs.cse.scoring.scorer import function_at, module_at, verified

TOLERANCE = "bit for bit"

CALLS, TRIES = 8, 48
"""Calls on each random input, and how many are tried to find as many that do different things."""

LARGE = 400_000
"""Letters of IR that are too many to be compiled for a check: a second's work, or two."""

LONGER = 5
"""How many times as long as the function as written the other may take."""


def compared(path: str, name: str, shared: tuple[int, ...], inputs: int, seed: int) -> Validation:
    """Have LLVM's verifier look at a choice, and run it in a made-up world beside the function as written.

    A first run finds out what the function as written reads, and makes that up. The function as written
    then runs before and after the other, the second time with stack and code at other addresses, and another
    byte all over the stack: calls whose outcomes depend on these do not count, and nor do those that crash or
    do not end. Where nothing counts, or too much would have to be compiled, all that it calls is made up.

    Args:
        path: The module, prepared for this machine.
        name: Name of the function, sigil included.
        shared: The places of the candidates that are shared.
        inputs: Random inputs.
        seed: Seed of these.
    """
    said = verified(path, name, shared)
    if said:
        return Validation(False, 0.0, "LLVM's verifier", 0, said)
    with_others = Comparison(path, name, seed, alone=False)
    if not with_others.large:
        found = with_others.made(shared, inputs)
        if not found.ok or found.checked:
            return found
    return Comparison(path, name, seed, alone=True).made(shared, inputs)


class Comparison:
    """Runs a function as it is written, and with a choice.

    Args:
        path: The module, prepared for this machine.
        name: Name of the function, sigil included.
        seed: Seed of what is made up.
        alone: Whether all that it calls is made up, too.
    """

    def __init__(self, path: str, name: str, seed: int, alone: bool) -> None:
        self._function = function_at(path, name)
        header, lines = self._function.function.header, self._function.sharing.lines(())
        externals: list[External] = []
        self._world = World(seed, known_in(lines), externals)
        self._harness = Harness(
            module_at(path), name, header, self._world.memory, self._world.addresses, externals, alone
        )

    @property
    def large(self) -> bool:
        """Whether compiling the function with all that it calls would take long."""
        return len(self._as_written) > LARGE

    @cached_property
    def _as_written(self) -> str:
        """The module with the function as it is written."""
        return self._harness.text(self._function.sharing.lines(()))

    def made(self, shared: tuple[int, ...], inputs: int) -> Validation:
        """Return how a choice compares with the function as written."""
        images = self._images(inputs)
        if isinstance(images, str):
            return _blind(f"in a made-up world it does not run as written: {images}")
        before = self._run((), images)
        if isinstance(before, str):
            return _blind(f"in a made-up world it does not run as written: {before}")
        ended = {call: images[call] for call, one in before.items() if isinstance(one, bytes)}
        if not ended:
            return _blind(f"in a made-up world it does not run as written: {_most(before.values())}")
        after = self._run(shared, ended, LONGER)
        if isinstance(after, str):
            return Validation(False, 0.0, TOLERANCE, inputs, after)
        again = self._run((), ended, LONGER, elsewhere=True)
        if isinstance(again, str):
            return _blind(f"in a made-up world it does not run twice as written: {again}")
        return _judged(before, after, again, inputs)

    def _images(self, inputs: int) -> Mapping[int, Image] | str:
        """Return what memory holds at first in calls that end, or why none does; different outcomes first."""
        text = self._harness.text(self._function.sharing.lines(()), asks=True)

        def enough(ends: Sequence[Found]) -> bool:
            return len({one.outcome for one in ends}) >= inputs * CALLS

        begin = partial(self._world.begin, Image())
        found = outcomes(text, begin, self._world.found, range(inputs * TRIES), 2 * CALL_S, enough=enough)
        if isinstance(found, str):
            return found
        ended = {call: one for call, one in found.items() if isinstance(one, Found)}
        new = {one.outcome: call for call, one in reversed(ended.items())}
        order = sorted(ended, key=lambda call: (new[ended[call].outcome] != call, call))
        return {call: ended[call].image for call in order[: inputs * CALLS]} or _most(found.values())

    def _run(
        self, shared: tuple[int, ...], images: Mapping[int, Image], longer: int = 1, elsewhere: bool = False
    ) -> Mapping[int, bytes | str] | str:
        text = self._as_written
        if shared or elsewhere:
            text = self._harness.text(self._function.sharing.lines(shared), elsewhere=elsewhere)

        def begin(call: int, leave: Callable[[], NoReturn]) -> None:
            self._world.begin(images[call], call, leave)

        return outcomes(text, begin, self._world.ended, [*images], longer * CALL_S, elsewhere)


def _judged(
    before: Mapping[int, bytes | str],
    after: Mapping[int, bytes | str],
    again: Mapping[int, bytes | str],
    inputs: int,
) -> Validation:
    sure = [call for call, one in again.items() if one == before[call]]
    wrong = [call for call in sure if after.get(call) != before[call]]
    if wrong:
        detail = f"{len(wrong)} of {len(sure)} calls differ"
        failures = [one for one in map(after.get, wrong) if isinstance(one, str)]
        return Validation(False, 0.0, TOLERANCE, inputs, "; ".join([detail, *failures[:1]]))
    if len(sure) < 2:
        return _blind("what it leaves in a made-up world depends on addresses")
    if len({before[call] for call in sure}) < 2:
        return _blind("it does the same in all made-up worlds")
    return Validation(True, 0.0, TOLERANCE, inputs)


def _most(outcomes: Iterable[object]) -> str:
    [(why, _)] = Counter(map(str, outcomes)).most_common(1)
    return why


def _blind(why: str) -> Validation:
    return Validation(True, 0.0, TOLERANCE, 0, blind=why)
