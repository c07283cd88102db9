"""Runs of a function of a module, of which only what others can observe is recorded or compared.

The modules before and after LLVM's passes have other blocks, names and variables. What must be the same are
the calls of external functions with their arguments and the memory that they see, the result, and the memory
that the caller sees at the end. Functions of the module are executed, so that inlining makes no difference.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from irgym.envs.llvm.checking.likeness import Likeness
from irgym.envs.llvm.checking.recording import ALLOCATIONS, OFFSETS, WORD, Recording
from irgym.envs.llvm.checking.records import Happening, Record, is_local, is_outer, is_variable
from irgym.llvmir.interpreter.calls import Access, Call
from irgym.llvmir.interpreter.layout import Kind
from irgym.llvmir.interpreter.machine import PURE, callee_number, poisoned
from irgym.llvmir.interpreter.making import ARGUMENTS, SLOTS
from irgym.llvmir.interpreter.memory import Region
from irgym.llvmir.interpreter.memory_map import HEAP, MIDDLE, REGION_BITS, SOLE
from irgym.llvmir.interpreter.numbers import Value
from irgym.llvmir.interpreter.operands import Operand
from irgym.llvmir.interpreter.poison import POISON, Left, Undefined
from irgym.llvmir.interpreter.program import Code, Program
from irgym.llvmir.interpreter.running import Running
from irgym.llvmir.interpreter.traces import Differs, plain

_ENDLESS = 1 << REGION_BITS - 2
_NOTHING = Access(False, False, False, False, False, False)
_PARAMETERS = 32
"""Number of arguments of a call from outside that have keys."""

_PARTNER = ALLOCATIONS - SLOTS


@dataclass
class Observer(Recording):
    """A run.

    Args:
        program: The module.
        world: The random world.
        steps: Limit on instructions.
        reference: Record of the original's run to compare with, if any.
        turn: Whether to use the alternative undefined values.
        original: The module before the passes; None where this is the original.
        kept: Regions of internal variables that are compared at the end.
        partners: Functions of which one is called before or afterwards, since they use the same internal
            variables.
    """

    original: Program | None = None
    kept: frozenset[int] = frozenset()
    partners: Sequence[Code] = ()

    def __post_init__(self) -> None:
        """Create an empty memory."""
        super().__post_init__()
        self._likeness: Likeness | None = None
        if isinstance(self.reference, Record):
            original = self.original or self.program
            self._likeness = Likeness(original, self.program, self.reference, self.memory, self.world.changed)

    def run(self, code: Code) -> Record:
        """See `Running.run`."""
        steps = self.steps
        end = ""
        calls = [code]
        if self.partners:
            which, first = divmod(self.world.bits(_PARTNER, WORD), 2)
            calls.insert(0 if first else 1, self.partners[which % len(self.partners)])
        parameters = tuple(each.parameters for each in calls)
        if isinstance(self.reference, Record):
            parameters = self.reference.parameters
        results: list[Value] = []
        try:
            for number, each in enumerate(calls):
                numbered = enumerate(parameters[number], number * _PARAMETERS)
                arguments = tuple(self.argument(place, parameter) for place, parameter in numbered)
                first = self._regions
                results.append(self.executed(each, arguments, self.entered))
                self.leave(first)
            result = tuple(results)
        except Left as error:
            end, result = str(error), None
        changes = self.memory.changes()
        ended, renewed = self._lives()
        roots = {*self.kept, *self._escaped, *self._reach.pointed(result)}
        roots |= self._reach.stored(changes, self._escaped)
        reachable = {number for number in self._reach.behind(roots) if not is_variable(number)}
        record = Record(
            (),
            result,
            changes,
            end,
            self.drawn,
            self.seen,
            frozenset(self.edges),
            frozenset(self.entered),
            frozenset(self.features),
            self.operands,
            steps - self.steps + self.work,
            self.vague or self.memory.undefined,
            tuple(self.happenings),
            parameters,
            self.initial,
            frozenset(reachable),
            frozenset(self._zeros),
            tuple(self.allocations),
            ended | renewed,
        )
        self._compare_ends(record)
        return record

    def _compare_ends(self, record: Record) -> None:
        wanted = self.reference
        if self._likeness is None or not isinstance(wanted, Record):
            return
        left = wanted.happenings[len(record.happenings) :]
        if left:
            raise Differs(f"it does not call {_named(left[0].what)}")
        if wanted.ended != record.ended:
            raise Differs(f"it ends with {record.ended or 'a return'}, not with {wanted.ended or 'a return'}")
        self._likeness.advance(wanted.left, frozenset())
        self._likeness.note(wanted.changes, record.changes)
        if not self._likeness.alike(wanted.result, record.result):
            raise Differs(f"the result is {_results(record.result)}, not {_results(wanted.result)}")
        if not wanted.ended:
            self._likeness.compare(wanted.reachable, None)

    def argument(self, place: int, parameter: Operand) -> Value:
        """Return the random argument at a place; where it promises so, only it points to its object."""
        if parameter.kind != "ptr":
            return super().argument(place, parameter)
        if parameter.named("byval") is not None:
            address = HEAP - (place + 1 << REGION_BITS) + MIDDLE
            self.memory.regions[address >> REGION_BITS] = Region(_ENDLESS, made_up=True)
            if self._likeness is not None:
                self._likeness.given(address >> REGION_BITS)
            return address
        if parameter.named("sret") is not None or "noalias" in parameter.attributes:
            return SOLE + (place << REGION_BITS) + MIDDLE
        return super().argument(place, parameter)

    def _bits(self, key: int, kind: Kind) -> int:
        if key >= ARGUMENTS or self._likeness is None or not isinstance(self.reference, Record):
            return super()._bits(key, kind)
        origin = self._likeness.shown(key)
        drawn = Running._bits(self, key if origin is None else origin, kind).to_bytes(kind.size, "little")
        if origin is None:
            return int.from_bytes(drawn, "little")
        initial, drawn_here = self.reference.initial, self._likeness.initial
        found = (
            initial[place] if place in initial else drawn_here.setdefault(place, byte)
            for place, byte in enumerate(drawn, origin)
        )
        return int.from_bytes(bytes(found), "little")

    def event(self, what: str, arguments: tuple[Value, ...]) -> None:
        """Record or compare an observable event that is no call, such as a volatile access."""
        ordered = any(word in what for word in ("release", "acq", "seq_cst"))
        self.happens(what, arguments, None, Access() if ordered else _NOTHING)

    def external(self, call: Call, target: object, arguments: tuple[Value, ...], invoked: bool) -> Value:
        """See `Running.external`."""
        if poisoned(arguments):
            if call.quiet:
                return POISON
            raise Undefined("a call takes poison")
        arguments = tuple(map(self.by_value, call.operands, arguments)) + arguments[len(call.operands) :]
        if call.quiet:
            key = hash((callee_number(target), plain(self.nameless(arguments)))) & 0xFFFFFFFFFFFF
            return self.answered(call, PURE + SLOTS * key)
        happening = self.happens(target, arguments, call, call.access)
        if "noreturn" in call.words:
            raise Left("a call that does not return")
        return happening.answer

    def happens(
        self, what: object, arguments: tuple[Any, ...], call: Call | None, access: Access
    ) -> Happening:
        """Record an observable event, or compare it with the original's.

        Args:
            what: Name of the function, or what else happens.
            arguments: What it takes.
            call: The call, if it is one; its result is random, and it may write memory.
            access: Memory that it may access.
        """
        number = len(self.happenings)
        if self._likeness is None or not isinstance(self.reference, Record):
            happening = self.recorded(what, arguments, call, access)
        else:
            changes = self.memory.changes()
            if number >= len(self.reference.happenings):
                raise Differs(f"it calls {_named(what)} in addition")
            happening = self.reference.happenings[number]
            if happening.what != what:
                raise Differs(f"it calls {_named(what)} instead of {_named(happening.what)}")
            self._likeness.advance(happening.ended, happening.renewed)
            self._likeness.note(happening.changes, changes)
            if not self._likeness.alike(happening.arguments, arguments):
                given = f"{_shown(arguments)}, not {_shown(happening.arguments)}"
                raise Differs(f"a call of {_named(what)} takes {given}")
            self._likeness.compare(happening.seen, happening.scope)
        self.happenings.append(happening)
        if self._likeness is not None:
            self._likeness.settle(happening)
        for address, kind, bits in happening.writes:
            there = self._likeness.there(address) if self._likeness is not None else address
            if there is not None:
                self.memory.store(there, kind, bits)
        if self._likeness is None:
            for number in happening.handed:
                if number in self.memory.regions:
                    self.memory.regions[number].made_up = True
        else:
            self._likeness.note(_written(happening), self.memory.changes())
        return happening

    def resize(self, call: Call, old: int, size: int) -> Value:
        """Reallocate memory that the run has not allocated: an event; the new memory is random."""
        new = self.happens("@realloc", (old, size), call, _NOTHING).answer
        if new:
            self.memory.free(old)
        return new

    def release(self, address: Value) -> None:
        """Free memory: an event unless the run allocated it."""
        if address is POISON:
            raise Undefined("a call takes poison")
        if not address:
            return
        if not is_local(address):
            if not is_outer(address):
                raise Undefined("a variable is freed")
            self.happens("@free", (address,), None, _NOTHING)
        elif is_variable(address >> REGION_BITS) or address & OFFSETS != MIDDLE:
            raise Undefined("a variable is freed")
        self.memory.region(address)
        self.memory.free(address)


def _written(happening: Happening) -> dict[int, int]:
    """Return the bytes that a call wrote."""
    return {
        address + place: byte
        for address, kind, bits in happening.writes
        for place, byte in enumerate(bits.to_bytes(kind.size, "little"))
    }


def _named(what: object) -> str:
    return str(what).removeprefix("@") if not isinstance(what, int) else "an unknown function"


def _results(value: Value) -> str:
    """Return the results of the functions called, in words."""
    return " and then ".join(map(_shown, value)) if isinstance(value, tuple) else _shown(value)  # pyright: ignore[reportUnknownArgumentType]


def _shown(value: object) -> str:
    if isinstance(value, tuple):
        return f"({', '.join(map(_shown, value))})"  # pyright: ignore[reportUnknownArgumentType]
    return (
        "a pointer"
        if isinstance(value, int) and value >= 1 << REGION_BITS and value < SOLE * 2
        else str(value)
    )
