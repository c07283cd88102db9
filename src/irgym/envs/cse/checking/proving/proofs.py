"""Proofs that leaders equal the results they replace. It runs in a child."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from typing import Any

from irgym.base.errors import BackendError
from irgym.envs.cse.checking.proving.lanes import UnsupportedError, pointer_bits
from irgym.envs.cse.checking.proving.pairs import Match, Pairs
from irgym.envs.cse.checking.proving.terms import Terms, Value
from irgym.envs.cse.compiling.scorer import function_at, module_at
from irgym.envs.cse.compiling.toolchain import INSTALL
from irgym.llvmir.ir.effects import Effects
from irgym.llvmir.ir.function import Function

PAIR_MS, ALL_S = 500, 5.0
"""Time limits of z3: milliseconds per pair, and seconds per choice."""


@dataclass(frozen=True)
class Proofs:
    """Outcomes for the pairs of a leader and a result it replaces.

    Attributes:
        same: Number of pairs that are the same expression, flags and leaves included.
        solved: Number of further pairs that z3 proves equal.
        open: Number of pairs that are neither proved nor refuted.
        refuted: Pairs that z3 refutes, or that are different expressions: the leader, and the dropped result.
    """

    same: int
    solved: int
    open: int
    refuted: tuple[tuple[str, str], ...]

    @property
    def proved(self) -> int:
        """Number of proved pairs."""
        return self.same + self.solved

    @property
    def pairs(self) -> int:
        """Number of pairs."""
        return self.proved + self.open + len(self.refuted)


@lru_cache(maxsize=256)
def proofs_of(path: str, name: str, shared: tuple[int, ...]) -> Proofs:
    """Prove the shared results of a choice equal.

    Args:
        path: File of the prepared module.
        name: Name of the function, sigil included.
        shared: Places of the shared candidates.

    Raises:
        BackendError: z3 is not installed, and a proof needs it.
    """
    module, analysed = module_at(path), function_at(path, name)
    header = analysed.function.header
    replaced = dict(pair for place in shared for pair in analysed.candidates[place].replaced)
    after = Function.read(name, header, analysed.sharing.lines(shared))
    pairs = Pairs(analysed.function, after, replaced, Effects(module, header))
    return proved(pairs, replaced, pointer_bits(module.target))


def proved(pairs: Pairs, replaced: Mapping[str, str], pointer: int) -> Proofs:
    """Prove dropped results equal to their replacements.

    Args:
        pairs: Expressions before and after the choice.
        replaced: The replacement of each dropped result.
        pointer: Width of a pointer in bits.

    Raises:
        BackendError: z3 is not installed, and a proof needs it.
    """
    matches = {(kept, dropped): pairs.compare(kept, dropped) for dropped, kept in replaced.items()}
    same = sum(match is Match.SAME for match in matches.values())
    doubtful = [pair for pair, match in matches.items() if match is not Match.SAME]
    if not doubtful:
        return Proofs(same, 0, 0, ())
    solver = Solver(pairs, replaced, pointer)
    found = [solver.holds(*pair) for pair in doubtful]
    other = [matches[pair] is Match.DIFFERENT for pair in doubtful]
    refuted = [
        pair
        for pair, holds, differs in zip(doubtful, found, other, strict=True)
        if holds is False or (differs and not holds)
    ]
    solved = sum(holds is True for holds in found)
    return Proofs(same, solved, len(doubtful) - solved - len(refuted), tuple(refuted))


class Solver:
    """Asks z3 whether results may replace others.

    Args:
        pairs: Expressions before and after the choice.
        replaced: The replacement of each dropped result.
        pointer: Width of a pointer in bits.

    Raises:
        BackendError: z3 is not installed.
    """

    def __init__(self, pairs: Pairs, replaced: Mapping[str, str], pointer: int) -> None:
        self._z3 = solver_module()
        self._until = time.monotonic() + ALL_S
        self._after = Terms(self._z3, pairs.after, pairs.leaf, {}, pointer)

        def chosen(name: str) -> Value:
            return self._after.of(replaced.get(name, name))  # any value is allowed, so take this one

        self._before = Terms(self._z3, pairs.before, pairs.leaf, pairs.loads, pointer, chosen)

    def holds(self, kept: str, dropped: str) -> bool | None:
        """Say whether a result equals the one it replaces wherever that is not poison; None if unknown."""
        z3 = self._z3
        left = min(PAIR_MS, int(1000 * (self._until - time.monotonic())))
        if left <= 0:
            return None
        try:
            after, before = self._after.of(kept), self._before.of(dropped)
        except UnsupportedError:
            return None
        solver = z3.SolverFor("QF_UFBV")
        solver.set("timeout", left)
        solver.add(
            z3.Or(
                [
                    z3.And(z3.Not(old.poison), z3.Or(new.poison, new.bits != old.bits))
                    for new, old in zip(after, before, strict=True)
                ]
            )
        )
        found = solver.check()
        if found == z3.unsat:
            return True
        loose = self._after.loose or self._before.loose
        return False if found == z3.sat and not loose else None


def solver_module() -> Any:
    """Return z3.

    Raises:
        BackendError: It is not installed.
    """
    try:
        return import_module("z3")
    except ImportError as error:
        raise BackendError(f"z3 is not installed: run {INSTALL}") from error
