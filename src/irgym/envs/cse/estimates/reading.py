"""What instructions a choice leaves, and what each of them needs.

A reading follows from that of another choice: where two differ in one candidate, only what it touches is read
again.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from irgym.envs.cse.estimates.operations import ARITHMETIC, Operation, Operations

SIMPLE = 0.25
"""What most instructions cost, in the unit of the score."""

COSTS: Mapping[str, float] = {
    "call": 2.0,
    "load": 0.75,
    **dict.fromkeys(("store", "ret", "mul", "sitofp", "uitofp", "fptosi", "fptoui", "fpext", "fptrunc"), 1.0),
    **dict.fromkeys(("select", "fadd", "fsub", "fmul", "getelementptr"), 0.5),
    **dict.fromkeys(("udiv", "sdiv", "urem", "srem"), 20.25),
    **dict.fromkeys(("fdiv", "frem"), 4.5),
    **dict.fromkeys(("icmp", "fcmp"), 0.75),
    "phi": 0.0,
}
"""What operations cost that become instructions of their own: rounded from `scoring.instructions`."""

COMPARES, FOLDED = 0.25, 0.5
"""What comparing costs without putting the result into a register, and a load as a part of its user."""

_FREE = frozenset(("bitcast", "ptrtoint", "inttoptr", "trunc", "freeze", "alloca"))
_FOLDING = frozenset(
    (*ARITHMETIC, "icmp", "fcmp", "fadd", "fsub", "fmul", "fdiv", "zext", "sext", "sitofp", "fpext")
)
_STAYING = frozenset(("call", "invoke", "store", "phi"))


@dataclass(frozen=True, slots=True)
class Steps:
    """What is left of a block.

    Attributes:
        backwards: Its instructions, the last one first, with the values that each uses, and what it costs.
        used: The values that it uses and does not make itself before.
        made: The values that it makes.
    """

    backwards: Sequence[tuple[Operation, int, float]]
    used: int
    made: int


@dataclass(frozen=True, slots=True)
class Reading:
    """A function under a choice.

    Attributes:
        instead: For each value that is dropped, the one that takes its place.
        gone: Values that no instruction makes any more: those that are dropped, and those that nothing uses.
        users: The instructions that use each value that is left.
        inside: Values that their users compute: addresses, conditions, loads that are used once.
        needed: What using a value takes: itself; of a value inside its users what that is computed from.
        blocks: The blocks.
        by_phis: What phis of the following blocks need of each block.
        touched: Names of the values whose uses differ from those in the reading that this one follows from.
    """

    instead: Mapping[str, str]
    gone: AbstractSet[str]
    users: Mapping[str, Sequence[Operation]]
    inside: AbstractSet[str]
    needed: Mapping[str, int]
    blocks: Mapping[int, Steps]
    by_phis: Mapping[int, int]
    touched: AbstractSet[str]

    def blocks_using(self, name: str) -> Iterator[int]:
        """Yield the blocks in which a value is used; phis use it where it comes from."""
        for user in self.users.get(name, ()):
            if user.opcode == "phi":
                yield from (block for one, block in user.arriving if self.instead.get(one, one) == name)
            else:
                yield user.block


_UNREAD = Reading({}, frozenset(), {}, frozenset(), {}, {}, {}, frozenset())


class Reader:
    """Reads a function under choices.

    Args:
        code: The function's instructions.
        replaced: For each candidate the values that sharing it drops, with what takes their place.
        folds: Whether the target's instructions read memory themselves.
    """

    def __init__(
        self, code: Operations, replaced: Sequence[Sequence[tuple[str, str]]], *, folds: bool
    ) -> None:
        self._code = code
        self._replaced = replaced
        self._folds = folds

    def first(self) -> Reading:
        """Return the reading of the function as it is, from nothing else."""
        return self._read(_UNREAD, frozenset(), frozenset(self._code.names))

    def changed(self, before: Reading, chosen: Collection[int]) -> Reading:
        """Return the reading of a choice, by the places of the candidates that are shared.

        Args:
            before: The reading of another choice, the more alike, the better.
            chosen: The choice.
        """
        return self._read(before, chosen, frozenset())

    def _read(self, before: Reading, chosen: Collection[int], unread: frozenset[str]) -> Reading:
        """Return the reading that follows from another one, in which some names were not read."""
        code = self._code
        instead = self._instead(chosen)
        moved = before.instead.items() ^ instead.items()
        also = _inverted(instead)
        touched = {*unread, *(name for pair in moved for name in pair)}
        users, gone = self._used(before, instead, also, touched)
        flipped = {
            name
            for name in touched
            if (name in before.inside) != self._goes_inside(name, users.get(name, ()))
        }
        inside = before.inside ^ flipped
        changed = {*unread, *flipped, *(name for name, _ in moved)}
        self._spread(changed, inside | before.inside, also)
        needed = dict(before.needed)
        for name in changed:
            needed.pop(name, None)
        needs = _Needs(code, instead, inside, needed)
        again = {one.block for name in changed for one in code.using.get(name, ())}
        again.update(code.made[name].block for name in (gone ^ before.gone) | flipped)
        ends = {block for name in changed for block in code.arriving.get(name, ())}
        if unread:
            again = ends = set(code.blocks)
        return Reading(
            instead,
            gone,
            users,
            inside,
            needed,
            {**before.blocks, **{block: self._steps(block, needs, gone) for block in again}},
            {**before.by_phis, **{block: needs.of(code.by_phis[block]) for block in ends}},
            touched,
        )

    def _instead(self, chosen: Collection[int]) -> dict[str, str]:
        found: dict[str, str] = {}
        for place in chosen:
            found.update(self._replaced[place])
        for name in found:
            while found[name] in found:
                found[name] = found[found[name]]
        return found

    def _used(
        self,
        before: Reading,
        instead: Mapping[str, str],
        also: Mapping[str, Sequence[str]],
        touched: set[str],
    ) -> tuple[dict[str, Sequence[Operation]], AbstractSet[str]]:
        """Return who uses which value, and the values that nothing makes any more.

        Args:
            before: The reading that this one follows from.
            instead: For each value that is dropped, the one that takes its place.
            also: The inverse of this.
            touched: Names to look at; those are added whose users change with them.
        """
        code = self._code
        users, gone = dict(before.users), set(before.gone)
        waiting = list(touched)
        while waiting:
            name = waiting.pop()
            using: list[Operation] = []
            if name not in instead:
                for one in (name, *also.get(name, ())):
                    using += [user for user in code.using.get(one, ()) if user.result not in gone]
            if using:
                users[name] = using
            else:
                users.pop(name, None)
            made = code.made.get(name)
            if made is None:
                continue
            unmade = name in instead or not (using or made.opcode in _STAYING)
            if unmade != (name in gone):
                gone ^= {name}
                operands = [instead.get(one, one) for one in made.operands]
                touched.update(operands)
                waiting += operands
        return users, gone

    def _goes_inside(self, name: str, using: Sequence[Operation]) -> bool:
        """Say whether the users of a value compute it."""
        one = self._code.made.get(name)
        if one is None or not using:
            return False
        match one.opcode:
            case "getelementptr":
                return one.addressable and all(_addresses(user, name) for user in using)
            case "icmp" | "fcmp":
                return all(user.opcode in ("br", "select") for user in using)
            case "load":
                return self._folds and len(using) == 1 and _folds(using[0], one)
            case opcode:
                return opcode in _FREE

    def _spread(self, changed: set[str], inside: AbstractSet[str], also: Mapping[str, Sequence[str]]) -> None:
        """Add the values that need changed ones, where these are inside their users."""
        waiting = list(changed)
        while waiting:
            name = waiting.pop()
            results = {one.result for one in self._code.using.get(name, ())}
            more = (results & inside).union(also.get(name, ())) - changed
            changed |= more
            waiting += more

    def _steps(self, block: int, needs: "_Needs", gone: AbstractSet[str]) -> Steps:
        backwards: list[tuple[Operation, int, float]] = []
        used = made = 0
        for one in reversed(self._code.blocks[block]):
            if one.result and (one.result in needs.inside or one.result in gone):
                continue
            uses, cost = 0, COSTS.get(one.opcode, SIMPLE)
            if one.opcode != "phi":
                uses = needs.of(one.operands)
                cost += sum(map(needs.inside_cost, one.operands))
            backwards.append((one, uses, cost))
            used = used & ~one.bit | uses
            made |= one.bit
        return Steps(backwards, used, made)


class _Needs:
    """What using values takes, under a choice.

    Args:
        code: The function's instructions.
        instead: For each value that is dropped, the one that takes its place.
        inside: Values that their users compute.
        known: What is known of values already; what is found is added.
    """

    def __init__(
        self, code: Operations, instead: Mapping[str, str], inside: AbstractSet[str], known: dict[str, int]
    ) -> None:
        self._code = code
        self._instead = instead
        self.inside = inside
        self._known = known

    def of(self, names: Iterable[str]) -> int:
        """Return the set of values that using some takes."""
        found = 0
        for name in names:
            real = self._instead.get(name, name)
            if real not in self._known:
                if real in self.inside:
                    self._known[real] = self.of(self._code.made[real].operands)
                else:
                    self._known[real] = self._code.bits[real]
            found |= self._known[real]
        return found

    def inside_cost(self, name: str) -> float:
        """Return what computing a value costs its user."""
        real = self._instead.get(name, name)
        if real not in self.inside:
            return 0.0
        one = self._code.made[real]
        if one.opcode == "load":
            return FOLDED
        if one.opcode not in ("icmp", "fcmp"):
            return 0.0
        return COMPARES + FOLDED * sum(map(self._is_load_inside, one.operands))

    def _is_load_inside(self, name: str) -> bool:
        real = self._instead.get(name, name)
        return real in self.inside and self._code.made[real].opcode == "load"


def _inverted(instead: Mapping[str, str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, taking in instead.items():
        found.setdefault(taking, []).append(name)
    return found


def _addresses(user: Operation, name: str) -> bool:
    """Say whether an instruction uses a value as an address, or computes another address from it."""
    return user.opcode in ("load", "getelementptr") or (user.opcode == "store" and user.stored != name)


def _folds(user: Operation, load: Operation) -> bool:
    """Say whether an instruction can read memory itself instead of a load that it uses."""
    return user.block == load.block and (user.opcode in _FOLDING or user.called == load.result)
