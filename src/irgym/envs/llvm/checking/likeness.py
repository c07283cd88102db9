"""Comparison of the memory and the values of a run with those of the original's run.

Variables and allocations have other addresses in the two runs, and passes merge, split and remove them. An
event shows a graph: objects at equal places in its arguments and in the memory that others see are matched,
and matched objects must have equal content wherever the original's is defined. A match lasts while the
original's object lives if others may know its address, otherwise for the event only.
"""

import math
from collections.abc import Iterable, Mapping

from irgym.envs.llvm.checking.reaching import Reach
from irgym.envs.llvm.checking.records import Happening, Record, is_local, is_outer
from irgym.llvmir.interpreter.memory import KNOWN, PAGE_BITS, UNTOUCHED, Memory
from irgym.llvmir.interpreter.memory_map import CODE, GLOBALS, REGION_BITS, STACK
from irgym.llvmir.interpreter.numbers import float_of
from irgym.llvmir.interpreter.poison import POISON
from irgym.llvmir.interpreter.program import Program
from irgym.llvmir.interpreter.traces import Differs, plain

UNWRITTEN = -2
"""Result of `Memory.byte` for a byte that was never written."""

_OFFSETS = (1 << REGION_BITS) - 1


class Likeness:
    """Compares a run with the record of the original's run.

    Args:
        original: The module before the passes.
        program: The module of the run.
        record: The record of the original's run.
        memory: Memory of the run.
        changed: Whether other modules have written the variables of the module.

    Attributes:
        twins: Region of the run by the region of the original, for matched objects.
        sources: Region of the original whose random bytes a region of the run has where nothing wrote it.
        initial: Random bytes of the run by the original's addresses.
    """

    def __init__(
        self, original: Program, program: Program, record: Record, memory: Memory, changed: bool
    ) -> None:
        self._original = original
        self._program = program
        self._record = record
        self._memory = memory
        self._reach = Reach(original, memory)
        self._changed = changed
        self._model: dict[int, dict[int, int]] = {}
        self._random: set[int] = set()
        self._dead: set[int] = set()
        self._pending: set[int] = set()
        self._shown: set[int] = set()
        self.twins: dict[int, int] = {}
        self._origins: dict[int, int] = {}
        self._bound: set[int] = set()
        self._lasting: frozenset[int] = frozenset()
        self.sources: dict[int, int] = {}
        self.initial: dict[int, int] = {}

    def match(self, wanted: int, found: int) -> bool:
        """Take a region of the run for one of the original; say whether both can be matched."""
        if wanted in self._dead:
            return True
        twin, origin = self.twins.get(wanted), self._origins.get(found)
        if twin != found:
            matched = [] if twin is None else [wanted]
            matched += [] if origin is None else [origin]
            if any(number in self._bound or number in self._lasting for number in matched):
                return False
            for number in matched:
                self._unmatch(number)
            self.twins[wanted] = found
            self._origins[found] = wanted
        self._bound.add(wanted)
        return True

    def _unmatch(self, wanted: int) -> None:
        self._shown.discard(wanted)
        if wanted in self.twins:
            del self._origins[self.twins.pop(wanted)]

    def given(self, number: int) -> None:
        """Match an argument that the caller passes by value: a variable with random content in both runs."""
        self.twins[number] = self._origins[number] = self.sources[number] = number
        self._random.add(number)

    def there(self, address: int) -> int | None:
        """Return the run's address of the original's address; None if the object is unmatched."""
        if not is_local(address):
            return address
        twin = self.twins.get(address >> REGION_BITS)
        return None if twin is None else (twin << REGION_BITS) | (address & _OFFSETS)

    def back(self, address: int) -> int | None:
        """Return the original's address of the run's address; None if the object is unmatched."""
        if not is_local(address):
            return address
        origin = self._origins.get(address >> REGION_BITS)
        return None if origin is None else (origin << REGION_BITS) | (address & _OFFSETS)

    def alike(self, wanted: object, found: object) -> bool:
        """Say whether a value equals the original's: anything equals poison, and matched objects do."""
        if wanted is POISON:
            return True
        if isinstance(wanted, tuple) and isinstance(found, tuple):
            pairs = zip(wanted, found, strict=False)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
            return len(wanted) == len(found) and all(self.alike(*pair) for pair in pairs)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
        if found is POISON or isinstance(wanted, tuple) or isinstance(found, tuple):
            return False
        if isinstance(wanted, int) and isinstance(found, int) and min(wanted, found) >= GLOBALS:
            return self._same_place(wanted, found)
        return plain(wanted) == plain(found)

    def _same_place(self, wanted: int, found: int) -> bool:
        if is_local(wanted) and is_local(found):
            return not (wanted ^ found) & _OFFSETS and self.match(wanted >> REGION_BITS, found >> REGION_BITS)
        if wanted == found:
            return True
        if GLOBALS <= wanted < CODE and GLOBALS <= found < CODE:
            return self._constant(self._original, wanted) == self._constant(self._program, found) != b""
        if CODE <= wanted < STACK and CODE <= found < STACK:
            merged = self._original.named(wanted) not in self._program.module.functions
            return merged and bool(self._program.named(found))
        return False

    def _constant(self, program: Program, address: int) -> bytes:
        """Return the bytes of a constant from an address on; empty if there is none."""
        region = program.region(address >> REGION_BITS << REGION_BITS, self._changed)
        if region is None or not region.constant:
            return b""
        content = region.content[0] if region.content else bytes(region.size)
        return content[(address & _OFFSETS) - (1 << (REGION_BITS - 1)) :] + b"."

    def advance(self, ended: frozenset[int], renewed: frozenset[int]) -> None:
        """Begin an event.

        Args:
            ended: Objects of the original whose life ended since the last event.
            renewed: Variables of the original that began another life since then.
        """
        self._bound = set()
        self._dead = (self._dead | ended) - renewed
        self._lasting -= ended | renewed
        for number in ended | renewed:
            self._unmatch(number)
            self._model.pop(number, None)
        self._random -= ended | renewed

    def note(self, wanted: Mapping[int, int], found: Iterable[int]) -> None:
        """Note writes.

        Args:
            wanted: Content of the bytes that the original wrote, by address.
            found: Addresses of the bytes that the run wrote.
        """
        for address, byte in wanted.items():
            self._model.setdefault(address >> REGION_BITS, {})[address] = byte
        self._pending.update(wanted)
        for address in found:
            origin = self.back(address)
            if origin is not None:
                self._pending.add(origin)

    def settle(self, happening: Happening) -> None:
        """End an event: others know what it shows, and what they may write is random from now on."""
        self._lasting = happening.escaped
        for number in happening.handed:
            if not is_local(number << REGION_BITS) or number in self._record.zeros:
                continue
            twin = self.twins.get(number)
            known = number in self._random and twin is not None and self.sources.get(twin) == number
            self._random.add(number)
            if not known and twin is not None and twin in self._memory.regions:
                self._randomise(number, twin)

    def _randomise(self, number: int, twin: int) -> None:
        """Make those bytes of an object random that the original has not written, as they are there."""
        written = self._model.get(number, {})
        low, high = twin << REGION_BITS, number << REGION_BITS
        for address, byte in written.items():
            place = low | (address & _OFFSETS)
            if byte >= 0 and self._memory.byte(place) == UNWRITTEN:
                self._memory.put(place, bytes([byte]), bytes([KNOWN]))
        for page in self._memory.pages_of(twin):
            marks, begin = self._memory.pages[page][1], page << PAGE_BITS & _OFFSETS | high
            for place in [place for place, mark in enumerate(marks) if mark]:
                if begin + place not in written:
                    marks[place] = UNTOUCHED
        self._memory.regions[twin].made_up, self._memory.regions[twin].zeros = True, False
        self.sources[twin] = number

    def compare(self, seen: frozenset[int], scope: frozenset[int] | None) -> None:
        """Compare the memory that others see.

        Args:
            seen: The private regions of the original that they see.
            scope: The regions to which their accesses are confined; None for none.

        Raises:
            Differs: The memory differs.
        """
        self._shown &= seen
        while True:
            fresh = {number for number in seen - self._shown if self._matched(number)}
            self._shown |= fresh
            if fresh:
                self._pending.update(place for number in fresh for place in self._model.get(number, ()))
            self._pending = {place for place in self._pending if self._visible(place, seen)}
            due = [place for place in self._pending if scope is None or place >> REGION_BITS in scope]
            if not due:
                return
            for place in sorted(due):
                self._pending.discard(place)
                self._check(place)

    def _matched(self, number: int) -> bool:
        return number << REGION_BITS < CODE or number in self.twins

    def _visible(self, address: int, seen: frozenset[int]) -> bool:
        number = address >> REGION_BITS
        if is_outer(address):
            return number not in self._memory.dead
        return number in self._shown or (number not in seen and not self._reach.private(address))

    def _check(self, address: int) -> None:
        if not address % 8:
            self._match_word(address)
        wanted = self._wanted(address)
        if wanted == -1 or (wanted is None and self._undefined(address >> REGION_BITS)):
            return
        found = self._found(address)
        if wanted is None:
            wanted = self.initial.get(address)
        if wanted == found or self._excused(address):
            return
        raise Differs(f"{self._called(address)} differs")

    def _undefined(self, number: int) -> bool:
        """Say whether what the original has not written of an object is undefined."""
        return (
            is_local(number << REGION_BITS)
            and number not in self._random
            and number not in self._record.zeros
        )

    def _wanted(self, address: int) -> int | None:
        """Return a byte of the original: -1 for any, None if it was never touched."""
        known = self._model.get(address >> REGION_BITS, {}).get(address)
        return self._initially(address) if known is None else known

    def _found(self, address: int) -> int | None:
        place = self.there(address)
        if place is None:
            return None
        found = self._memory.byte(place)
        if found != UNWRITTEN or not is_local(place):
            return self._initially(address) if found == UNWRITTEN else found
        region = self._memory.regions.get(place >> REGION_BITS)
        if region is not None and region.zeros:
            return 0
        shown = self.shown(place)
        return None if shown is None else self._record.initial.get(shown, self.initial.get(shown))

    def shown(self, address: int) -> int | None:
        """Return the original's address of a random byte of the run; None if there is none."""
        if not is_local(address):
            return address
        source = self.sources.get(address >> REGION_BITS)
        return None if source is None else source << REGION_BITS | (address & _OFFSETS)

    def _initially(self, address: int) -> int | None:
        if GLOBALS <= address < CODE:
            region = self._original.region(address >> REGION_BITS << REGION_BITS, self._changed)
            place = (address & _OFFSETS) - (1 << (REGION_BITS - 1))
            if region is not None and 0 <= place < region.size and (region.zeros or region.content):
                return region.content[0][place] if region.content else 0
        if address >> REGION_BITS in self._record.zeros:
            return 0
        return None if self._undefined(address >> REGION_BITS) else self._record.initial.get(address)

    def _match_word(self, address: int) -> None:
        """Match the objects to which equal places in memory point, even where the addresses are equal."""
        words = self._words(address, 8)
        if words is not None and is_local(words[0]) and not self.alike(*words):
            raise Differs(f"{self._called(address)} differs")

    def _words(self, start: int, size: int) -> tuple[int, int] | None:
        """Return some bytes of both runs as numbers; None if one of them is unknown."""
        pairs = [(self._wanted(start + place), self._found(start + place)) for place in range(size)]
        if any(byte is None or byte < 0 for pair in pairs for byte in pair):
            return None
        first, second = (bytes(byte or 0 for byte in column) for column in zip(*pairs, strict=True))
        return int.from_bytes(first, "little"), int.from_bytes(second, "little")

    def _excused(self, address: int) -> bool:
        """Say whether a byte belongs to matched pointers or to NaNs, whose bits may differ."""
        for size, excuses in ((8, self._same_word), (4, _not_numbers)):
            words = self._words(address - address % size, size)
            if words is not None and excuses(*words, size):
                return True
        return False

    def _same_word(self, wanted: int, found: int, size: int) -> bool:
        return self.alike(wanted, found) or _not_numbers(wanted, found, size)

    def _called(self, address: int) -> str:
        """Return the name of a place in memory, for messages."""
        if GLOBALS <= address < CODE:
            return f"the content of {self._original.global_at(address)}"
        if is_local(address):
            return "the content of a variable or an allocation that others see"
        return "the memory that the caller sees"


def _not_numbers(wanted: int, found: int, size: int) -> bool:
    return math.isnan(float_of(wanted, size)) and math.isnan(float_of(found, size))
