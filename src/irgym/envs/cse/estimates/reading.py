"""The instructions that are left under a choice, and the values that each of them needs.

Readings are incremental: the reading of a choice starts from that of a similar choice, and only the parts
that the difference touches are read again.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from irgym.envs.cse.estimates.operations import ARITHMETIC, Operation, Operations

SIMPLE = 0.25
"""Cost of most instructions, in the unit of the score."""

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
"""Costs of operations that become separate instructions, rounded from `compiling.instructions`."""

COMPARES, FOLDED = 0.25, 0.5
"""Cost of a comparison whose result stays in the flags, and of a load folded into its user."""

_FREE = frozenset(("bitcast", "ptrtoint", "inttoptr", "trunc", "freeze", "alloca"))
_FOLDING = frozenset(
    (*ARITHMETIC, "icmp", "fcmp", "fadd", "fsub", "fmul", "fdiv", "zext", "sext", "sitofp", "fpext")
)
_STAYING = frozenset(("call", "invoke", "store", "phi"))


@dataclass(frozen=True, slots=True)
class Steps:
    """The instructions that are left of a block.

    Attributes:
        backwards: Instructions in reverse order, each with the set of values it uses and its cost.
        used: Set of the values that are used before any definition in the block.
        made: Set of the values that are defined in the block.
    """

    backwards: Sequence[tuple[Operation, int, float]]
    used: int
    made: int


@dataclass(frozen=True, slots=True)
class Reading:
    """A function under a choice.

    Attributes:
        instead: The replacement of each dropped value.
        gone: Values that are no longer computed: dropped ones and those without uses.
        users: The instructions that use each remaining value.
        inside: Values folded into their users: addresses, conditions, loads with a single use.
        needed: Set of the values in registers that using a value needs: itself, or the operands of a folded
            value.
        blocks: The instructions of each block.
        by_phis: Set of the values that phis of the successors need from each block.
        touched: Names of the values whose uses differ from those in the previous reading.
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
        """Yield the blocks that use a value; a phi uses it in the predecessor block."""
        for user in self.users.get(name, ()):
            if user.opcode == "phi":
                yield from (block for value, block in user.arriving if self.instead.get(value, value) == name)
            else:
                yield user.block


_UNREAD = Reading({}, frozenset(), {}, frozenset(), {}, {}, {}, frozenset())


class Reader:
    """Reads a function under choices.

    Args:
        code: The function's instructions.
        replaced: For each candidate, the values that sharing it drops, with their replacements.
        folds: Whether instructions of the target take memory operands.
    """

    def __init__(
        self, code: Operations, replaced: Sequence[Sequence[tuple[str, str]]], *, folds: bool
    ) -> None:
        self._code = code
        self._replaced = replaced
        self._folds = folds

    def first(self) -> Reading:
        """Return the reading of the original function, from scratch."""
        return self._read(_UNREAD, frozenset(), frozenset(self._code.names))

    def changed(self, before: Reading, chosen: Collection[int]) -> Reading:
        """Return the reading of a choice, given the places of the shared candidates.

        Args:
            before: The reading of another choice; the more similar, the less is read again.
            chosen: The choice.
        """
        return self._read(before, chosen, frozenset())

    def _read(self, before: Reading, chosen: Collection[int], unread: frozenset[str]) -> Reading:
        """Return the reading of a choice from a previous one, in which the names in `unread` are missing."""
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
        again = {user.block for name in changed for user in code.using.get(name, ())}
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
        """Return the users of each value, and the values that are no longer computed.

        Args:
            before: The previous reading.
            instead: The replacement of each dropped value.
            also: The inverse of `instead`.
            touched: Names to visit; names whose users change in turn are added.
        """
        code = self._code
        users, gone = dict(before.users), set(before.gone)
        waiting = list(touched)
        while waiting:
            name = waiting.pop()
            using: list[Operation] = []
            if name not in instead:
                for replaced in (name, *also.get(name, ())):
                    using += [user for user in code.using.get(replaced, ()) if user.result not in gone]
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
                operands = [instead.get(operand, operand) for operand in made.operands]
                touched.update(operands)
                waiting += operands
        return users, gone

    def _goes_inside(self, name: str, using: Sequence[Operation]) -> bool:
        """Say whether a value is folded into its users."""
        made = self._code.made.get(name)
        if made is None or not using:
            return False
        match made.opcode:
            case "getelementptr":
                return made.addressable and all(_addresses(user, name) for user in using)
            case "icmp" | "fcmp":
                return all(user.opcode in ("br", "select") for user in using)
            case "load":
                return self._folds and len(using) == 1 and _folds(using[0], made)
            case opcode:
                return opcode in _FREE

    def _spread(self, changed: set[str], inside: AbstractSet[str], also: Mapping[str, Sequence[str]]) -> None:
        """Add the values that depend on changed ones through folded values."""
        waiting = list(changed)
        while waiting:
            name = waiting.pop()
            results = {user.result for user in self._code.using.get(name, ())}
            more = (results & inside).union(also.get(name, ())) - changed
            changed |= more
            waiting += more

    def _steps(self, block: int, needs: "_Needs", gone: AbstractSet[str]) -> Steps:
        backwards: list[tuple[Operation, int, float]] = []
        used = made = 0
        for operation in reversed(self._code.blocks[block]):
            if operation.result and (operation.result in needs.inside or operation.result in gone):
                continue
            uses, cost = 0, COSTS.get(operation.opcode, SIMPLE)
            if operation.opcode != "phi":
                uses = needs.of(operation.operands)
                cost += sum(map(needs.inside_cost, operation.operands))
            backwards.append((operation, uses, cost))
            used = used & ~operation.bit | uses
            made |= operation.bit
        return Steps(backwards, used, made)


class _Needs:
    """Sets of the values that uses need, under a choice.

    Args:
        code: The function's instructions.
        instead: The replacement of each dropped value.
        inside: Values folded into their users.
        known: Sets that are known already; new ones are added.
    """

    def __init__(
        self, code: Operations, instead: Mapping[str, str], inside: AbstractSet[str], known: dict[str, int]
    ) -> None:
        self._code = code
        self._instead = instead
        self.inside = inside
        self._known = known

    def of(self, names: Iterable[str]) -> int:
        """Return the set of values in registers that uses of some values need."""
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
        """Return the cost that a folded value adds to its user."""
        real = self._instead.get(name, name)
        if real not in self.inside:
            return 0.0
        made = self._code.made[real]
        if made.opcode == "load":
            return FOLDED
        if made.opcode not in ("icmp", "fcmp"):
            return 0.0
        return COMPARES + FOLDED * sum(map(self._is_load_inside, made.operands))

    def _is_load_inside(self, name: str) -> bool:
        real = self._instead.get(name, name)
        return real in self.inside and self._code.made[real].opcode == "load"


def _inverted(instead: Mapping[str, str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, taking in instead.items():
        found.setdefault(taking, []).append(name)
    return found


def _addresses(user: Operation, name: str) -> bool:
    """Say whether an instruction uses a value as an address, or derives another address from it."""
    return user.opcode in ("load", "getelementptr") or (user.opcode == "store" and user.stored != name)


def _folds(user: Operation, load: Operation) -> bool:
    """Say whether a load can be folded into an instruction that uses it."""
    return user.block == load.block and (user.opcode in _FOLDING or user.called == load.result)
