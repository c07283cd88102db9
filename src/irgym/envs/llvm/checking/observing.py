"""Runs of a function of a module, of which only what others can observe is recorded or compared.

The modules before and after LLVM's passes have other blocks, names and variables. What must be the same are
the calls of external functions with their arguments and the memory that they see, the result, and the memory
that the caller sees at the end. Functions of the module are executed, so that inlining makes no difference.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from irgym.envs.llvm.checking.likeness import Likeness
from irgym.envs.llvm.checking.reaching import Reach
from irgym.envs.llvm.checking.records import Happening, Record, is_local, is_outer, is_variable
from irgym.llvmir.interpreter.calls import Access, Call
from irgym.llvmir.interpreter.layout import Kind
from irgym.llvmir.interpreter.machine import EVENTS, PURE, callee_number, poisoned
from irgym.llvmir.interpreter.making import ARGUMENTS, SLOTS
from irgym.llvmir.interpreter.memory import KNOWN, Region
from irgym.llvmir.interpreter.memory_map import CODE, GLOBALS, HEAP, MIDDLE, REGION_BITS, SOLE, STACK
from irgym.llvmir.interpreter.numbers import Value
from irgym.llvmir.interpreter.operands import Operand
from irgym.llvmir.interpreter.poison import POISON, Left, Undefined
from irgym.llvmir.interpreter.program import Code, Program
from irgym.llvmir.interpreter.running import Running
from irgym.llvmir.interpreter.traces import Differs, plain

ALLOCATIONS = EVENTS + ARGUMENTS
"""First key of the results of allocations."""

_ENDLESS = 1 << REGION_BITS - 2
_LOOKED_AT, _MOST_WRITES, _BYTES = 96, 24, 8
_NOTHING = Access(False, False, False, False, False, False)
_OFFSETS = (1 << REGION_BITS) - 1
_FIRST = STACK >> REGION_BITS
_PARAMETERS, _RESULTS = 32, 64
"""Places of arguments of a call from outside, and number of the first object that a callee returns as new."""

_PARTNER, _WORD = ALLOCATIONS - SLOTS, Kind("i64", 8, 64)


@dataclass
class Observer(Running):
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
    initial: dict[int, int] = field(default_factory=dict[int, int])
    allocations: list[tuple[str, int, bool]] = field(default_factory=list[tuple[str, int, bool]])
    _happenings: list[Happening] = field(default_factory=list[Happening])
    _zeros: set[int] = field(default_factory=set[int])
    _escaped: frozenset[int] = frozenset()

    def __post_init__(self) -> None:
        """Create an empty memory."""
        super().__post_init__()
        self._reach = Reach(self.program, self.memory)
        self._likeness: Likeness | None = None
        if isinstance(self.reference, Record):
            original = self.original or self.program
            self._likeness = Likeness(original, self.program, self.reference, self.memory, self.world.changed)

    def run(self, code: Code) -> Record:
        """See `Running.run`."""
        steps = self.steps
        ended = ""
        calls = [code]
        if self.partners:
            which, first = divmod(self.world.bits(_PARTNER, _WORD), 2)
            calls.insert(0 if first else 1, self.partners[which % len(self.partners)])
        parameters = tuple(each.parameters for each in calls)
        if isinstance(self.reference, Record):
            parameters = self.reference.parameters
        results: list[Value] = []
        try:
            for number, each in enumerate(calls):
                numbered = enumerate(parameters[number], number * _PARAMETERS)
                arguments = tuple(self.argument(place, parameter) for place, parameter in numbered)
                results.append(self.executed(each, arguments, self.entered))
            result = tuple(results)
        except Left as error:
            ended, result = str(error), None
        changes = self.memory.changes()
        left = frozenset().union(*self._lives())
        roots = {*self.kept, *self._escaped, *self._reach.pointed(result)}
        roots |= self._reach.stored(changes, self._escaped)
        reachable = {number for number in self._reach.behind(roots) if not is_variable(number)}
        record = Record(
            (),
            result,
            changes,
            ended,
            self.drawn,
            self.seen,
            frozenset(self.edges),
            frozenset(self.entered),
            frozenset(self.features),
            self.operands,
            steps - self.steps + self.work,
            self.vague or self.memory.undefined,
            tuple(self._happenings),
            parameters,
            self.initial,
            frozenset(reachable),
            frozenset(self._zeros),
            tuple(self.allocations),
            left,
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
        if key >= ARGUMENTS:
            return super()._bits(key, kind)
        if self._likeness is None or not isinstance(self.reference, Record):
            drawn = super()._bits(key, kind).to_bytes(kind.size, "little")
            known = [self.initial.setdefault(key + place, byte) for place, byte in enumerate(drawn)]
            return int.from_bytes(known, "little")
        origin = self._likeness.shown(key)
        if origin is None:
            return super()._bits(key, kind)
        drawn = bytearray(super()._bits(origin, kind).to_bytes(kind.size, "little"))
        for place in range(kind.size):
            known = self.reference.initial.get(origin + place, -1)
            if known < 0:
                known = self._likeness.initial.setdefault(origin + place, drawn[place])
            drawn[place] = known
        return int.from_bytes(drawn, "little")

    def _defined(self, name: str, arguments: tuple[Value, ...]) -> Value:
        first = self._regions
        result = super()._defined(name, arguments)
        for number in range(_FIRST + first + 1, _FIRST + self._regions + 1):
            if number in self.memory.regions:
                self.memory.free(number << REGION_BITS | MIDDLE)
        return result

    def _lives(self) -> tuple[frozenset[int], frozenset[int]]:
        """Return the objects whose life ended since the last event, and those that began another life."""
        turns = frozenset(self.memory.turns)
        self.memory.turns.clear()
        ended = turns & self.memory.dead
        return ended, turns - ended

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
        arguments = tuple(map(self._by_value, call.operands, arguments)) + arguments[len(call.operands) :]
        if call.quiet:
            key = hash((callee_number(target), plain(self._nameless(arguments)))) & 0xFFFFFFFFFFFF
            return self._answer(call, PURE + SLOTS * key)
        happening = self.happens(target, arguments, call, call.access)
        if "noreturn" in call.words:
            raise Left("a call that does not return")
        return happening.answer

    def _by_value(self, operand: Operand, value: Value) -> Value:
        """Return what a callee receives: the content of an argument that is passed by value, byte by byte."""
        passed = operand.named("byval")
        if passed is None:
            return value
        size = self.program.layout.size(passed)
        content, marks = self.memory.get(value, size, _WORD)
        words: list[Value] = []
        for place in range(0, size, _WORD.size):
            word, known = content[place : place + _WORD.size], marks[place : place + _WORD.size]
            if known.count(KNOWN) == _WORD.size:
                words.append(int.from_bytes(word, "little"))
            else:
                words += [byte if mark == KNOWN else POISON for byte, mark in zip(word, known, strict=True)]
        return tuple(words)

    def _nameless(self, arguments: tuple[Value, ...]) -> tuple[Value, ...]:
        """Return arguments without the numbers of private regions, which differ from form to form."""
        return tuple(
            value & _OFFSETS if isinstance(value, int) and self._reach.private(value) else value
            for value in arguments
        )

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
        changes = self.memory.changes()
        number = len(self._happenings)
        if self._likeness is None or not isinstance(self.reference, Record):
            happening = self._recorded(what, arguments, call, access, changes)
        else:
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
        self._happenings.append(happening)
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

    def _recorded(
        self, what: object, arguments: tuple[Any, ...], call: Call | None, access: Access, changes: Any
    ) -> Happening:
        ended, renewed = self._lives()
        self._escaped -= ended | renewed
        taken = list(zip(call.operands, arguments, strict=False)) if call is not None else []  # pyright: ignore[reportArgumentType]
        captured = self._reach.pointed(tuple(value for operand, value in taken if _captures(operand)))
        self._escaped = self._reach.behind(
            {*self._escaped, *captured, *self._reach.stored(changes, self._escaped)}
        )
        lent = {value >> REGION_BITS for operand, value in taken if _pointer(operand, value)}
        seen = self._reach.behind(
            {*self._escaped, *(n for n in lent if self._reach.private(n << REGION_BITS))}
        )
        read = frozenset(
            value >> REGION_BITS
            for operand, value in taken
            if _pointer(operand, value) and not {"readnone", "writeonly"} & {*operand.attributes}
        )
        scope = None if access.reads_rest else read if access.reads_arguments else frozenset[int]()
        if call is None:
            return Happening(
                what,
                arguments,
                changes,
                None,
                (),
                False,
                seen,
                scope,
                frozenset(),
                self._escaped,
                ended,
                renewed,
            )
        key = EVENTS + len(self._happenings) * SLOTS
        written = {value >> REGION_BITS for operand, value in taken if _writable(operand, value)}
        handed = frozenset(
            {*(written if access.writes_arguments else ()), *(seen if access.writes_rest else ())}
        )
        writes = tuple(self._writes(access, key, handed))
        answer = self._answer(call, key)
        return Happening(
            what,
            arguments,
            changes,
            answer,
            writes,
            False,
            seen,
            scope,
            handed,
            self._escaped,
            ended,
            renewed,
        )

    def _writes(self, access: Access, key: int, handed: frozenset[int]) -> Iterable[tuple[int, Kind, int]]:
        eligible = [
            (address, kind)
            for address, kind in self.memory.touched.items()
            if address >> REGION_BITS in handed or (access.writes_rest and not self._reach.private(address))
            if address >> REGION_BITS not in self.memory.dead and not self._constant(address)
        ]
        chosen = [
            (address, kind, self.world.bits(key ^ address, kind) & kind.mask)
            for address, kind in eligible[: -_LOOKED_AT - 1 : -1]
            if self.world.writes(key ^ address, kind.name == "ptr")
        ]
        return chosen[:_MOST_WRITES]

    def _constant(self, address: int) -> bool:
        if not GLOBALS <= address < CODE:
            return False
        region = self.region_at(address)
        return region is not None and region.constant

    def _answer(self, call: Call, key: int) -> Value:
        if call.returns == "void":
            return None
        if call.returns == "ptr" and "noalias" in call.words and self._likeness is None:
            return SOLE + (_RESULTS + len(self._happenings) << REGION_BITS) + MIDDLE
        never_null = "nonnull" in call.words or "dereferenceable" in call.words
        return self.made(call.returns, key, never_null)

    def allocate(self, name: str, size: int, zeros: bool) -> int:
        """Return new memory of some bytes; 0 if the world has none left."""
        key = ALLOCATIONS + len(self.allocations) * SLOTS
        given = size <= 1 << 30 and bool(self.made("ptr", key))
        self.allocations.append((name, size, given))
        if not given:
            return 0
        address = self.allocated(Region(size, zeros=zeros))
        if zeros:
            self._zeros.add(address >> REGION_BITS)
        return address

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
        elif is_variable(address >> REGION_BITS) or address & _OFFSETS != MIDDLE:
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


def _pointer(operand: Operand, value: Value) -> bool:
    return operand.kind == "ptr" and isinstance(value, int) and value > 0


def _captures(operand: Operand) -> bool:
    return operand.named("captures") != "none" and "nocapture" not in operand.attributes


def _writable(operand: Operand, value: Value) -> bool:
    return _pointer(operand, value) and not {"readonly", "readnone"} & {*operand.attributes}


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
