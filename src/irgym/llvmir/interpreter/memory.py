"""Memory of a run: pages of marked bytes, and regions that define the content of untouched bytes."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from irgym.llvmir.interpreter.layout import Kind
from irgym.llvmir.interpreter.memory_map import (
    CODE,
    GLOBALS,
    LAST,
    MIDDLE,
    OUTSIDE,
    REGION_BITS,
    SOLE,
    WORLD,
)
from irgym.llvmir.interpreter.numbers import Value
from irgym.llvmir.interpreter.poison import POISON, Undefined

PAGE_BITS = 8
PAGE = 1 << PAGE_BITS
"""Bytes of a page."""

UNTOUCHED, KNOWN, POISONED, UNSET = 0, 1, 2, 3
"""Marks of bytes; `UNSET` stands for bytes copied from memory that was never written."""

Content = tuple[bytes, bytes]
"""Bytes and their marks."""

Page = tuple[bytearray, bytearray]
"""Bytes of a page and their marks, mutable."""


@dataclass
class Region:
    """An object of known size.

    Attributes:
        size: Size in bytes.
        content: Initial content; None if it is undefined or random.
        made_up: Whether unwritten bytes are random rather than undefined.
        constant: Whether writing it is undefined behaviour.
        zeros: Whether unwritten bytes are 0.
    """

    size: int
    content: Content | None = None
    made_up: bool = False
    constant: bool = False
    zeros: bool = False


@dataclass
class Memory:
    """Memory of a run.

    Attributes:
        made_up: Returns the random bits of a scalar at an address.
        region_of: Returns the region of a global, given the region's address; None if it is unknown.
        filler: Content of undefined bytes.
        pages: Pages by the upper bits of addresses.
        writable: The writable pages.
        regions: Variables and allocations by number.
        written: Addresses and sizes of all stores since the last `changes`.
        touched: Kinds of the values at addresses, by first access.
        undefined: Whether undefined bytes were read.
        dead: Numbers of the objects whose life has ended.
        turns: Numbers of the objects whose life ended or began again, until someone empties the set.
    """

    made_up: Callable[[int, Kind], int]
    region_of: Callable[[int], Region | None]
    filler: int
    pages: dict[int, tuple[bytearray, bytearray]] = field(
        default_factory=dict[int, tuple[bytearray, bytearray]]
    )
    writable: dict[int, tuple[bytearray, bytearray]] = field(
        default_factory=dict[int, tuple[bytearray, bytearray]]
    )
    regions: dict[int, Region] = field(default_factory=dict[int, Region])
    written: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    touched: dict[int, Kind] = field(default_factory=dict[int, Kind])
    undefined: bool = False
    dead: set[int] = field(default_factory=set[int])
    turns: set[int] = field(default_factory=set[int])

    def load(self, address: Value, kind: Kind) -> Value:
        """Load the bits of a scalar.

        Raises:
            Undefined: There is no object at the address.
        """
        page = self.pages.get(address >> PAGE_BITS)
        if page is not None:
            place = address & (PAGE - 1)
            if page[1].startswith(kind.ones, place):
                return int.from_bytes(page[0][place : place + kind.size], "little") & kind.mask
        return self._load_slowly(address, kind)

    def store(self, address: Value, kind: Kind, bits: Value) -> None:
        """Store the bits of a scalar.

        Raises:
            Undefined: The address is not writable.
        """
        page = self.writable.get(address >> PAGE_BITS)
        if page is not None and bits is not POISON:
            place = address & (PAGE - 1)
            if page[1].startswith(kind.ones, place):
                page[0][place : place + kind.size] = bits.to_bytes(kind.size, "little")
                self.written.append((address, kind.size))
                return
        if address is POISON:
            raise Undefined("a store through poison")
        if kind.size and address not in self.touched:
            self.touched[address] = kind
        poisoned = bits is POISON
        content = bytes(kind.size) if poisoned else bits.to_bytes(kind.size, "little")
        self.put(address, content, bytes([POISONED if poisoned else KNOWN]) * kind.size)

    def put(self, address: int, content: bytes, marks: bytes) -> None:
        """Write bytes with their marks."""
        self._check(address, len(content), writes=True)
        for page, place, begin, end in _pieces(address, len(content)):
            there = self._page(page)
            if page not in self.writable:
                raise Undefined("a constant is written")
            there[0][place : place + end - begin] = content[begin:end]
            there[1][place : place + end - begin] = marks[begin:end]
        self.written.append((address, len(content)))

    def get(self, address: int, size: int, kind: Kind) -> Content:
        """Return bytes and marks; untouched bytes are drawn as values of a kind, or unset where undefined."""
        region = self._check(address, size)
        if region is not None and not region.made_up and not region.content and not region.zeros:
            content, marks = self.raw(address, size)
            return content, marks.replace(bytes([UNTOUCHED]), bytes([UNSET]))
        for begin in range(0, size - size % kind.size, kind.size):
            self.load(address + begin, kind)
        for begin in range(size - size % kind.size, size):
            self.load(address + begin, BYTE)
        return self.raw(address, size)

    def raw(self, address: int, size: int) -> Content:
        """Return bytes and marks without drawing any."""
        start = address & (PAGE - 1)
        if start + size <= PAGE:
            there = self.pages.get(address >> PAGE_BITS)
            if there is None:
                return bytes(size), bytes(size)
            return bytes(there[0][start : start + size]), bytes(there[1][start : start + size])
        content, marks = bytearray(), bytearray()
        for page, place, begin, end in _pieces(address, size):
            there = self.pages.get(page)
            content += there[0][place : place + end - begin] if there else bytes(end - begin)
            marks += there[1][place : place + end - begin] if there else bytes(end - begin)
        return bytes(content), bytes(marks)

    def free(self, address: int) -> None:
        """End the life of the object at an address; accesses to it are undefined from now on."""
        number = address >> REGION_BITS
        for page in list(self.pages_of(number)):
            del self.pages[page]
            self.writable.pop(page, None)
        self.dead.add(number)
        self.turns.add(number)
        self.regions.pop(number, None)

    def renew(self, address: int, alive: bool) -> None:
        """Begin or end a life of the variable at an address; its content is undefined from now on."""
        number = address >> REGION_BITS
        for page in self.pages_of(number):
            self.pages[page][1][:] = bytes(PAGE)
        self.regions[number].made_up = False
        self.turns.add(number)
        if alive:
            self.dead.discard(number)
        else:
            self.dead.add(number)

    def pages_of(self, number: int) -> Iterator[int]:
        """Yield the pages of an object that were touched."""
        region = self.regions.get(number)
        first = (number << REGION_BITS) + MIDDLE >> PAGE_BITS
        count = (region.size + PAGE - 1) >> PAGE_BITS if region is not None else len(self.pages)
        if count < len(self.pages):
            yield from (page for page in range(first, first + count) if page in self.pages)
        else:
            yield from (page for page in self.pages if page >> (REGION_BITS - PAGE_BITS) == number)

    def changes(self) -> Mapping[int, int]:
        """Return the content of the bytes written since the last call; -1 stands for poison."""
        found: dict[int, int] = {}
        for address, size in self.written:
            content, marks = self.raw(address, size)
            if marks.count(KNOWN) == size:
                found.update(enumerate(content, address))
                continue
            for place in range(size):
                if marks[place]:
                    found[address + place] = content[place] if marks[place] == KNOWN else -1
        self.written.clear()
        return found

    def byte(self, address: int) -> int:
        """Return the content of a byte: -1 for poison and unset bytes, -2 if it is untouched."""
        page = self.pages.get(address >> PAGE_BITS)
        mark = page[1][address & (PAGE - 1)] if page else UNTOUCHED
        if mark == UNTOUCHED or page is None:
            return -2
        return page[0][address & (PAGE - 1)] if mark == KNOWN else -1

    def _load_slowly(self, address: Value, kind: Kind) -> Value:
        if address is POISON:
            raise Undefined("a load through poison")
        region = self._check(address, kind.size)
        content, marks = self.raw(address, kind.size)
        if region and (region.content or region.zeros) and UNTOUCHED in marks:
            for page, *_ in _pieces(address, kind.size):
                self._page(page)
            content, marks = self.raw(address, kind.size)
        if POISONED in marks:
            return POISON
        if UNSET in marks:
            self.undefined = True
            content = bytes(
                self.filler if mark == UNSET else old for old, mark in zip(content, marks, strict=True)
            )
        if UNTOUCHED in marks:
            if region is None or region.made_up:
                drawn = self.made_up(address, kind).to_bytes(kind.size, "little")
                if address not in self.touched:
                    self.touched[address] = kind
            else:
                self.undefined = True
                drawn = bytes([self.filler]) * kind.size
            content = bytes(
                old if mark else new for old, mark, new in zip(content, marks, drawn, strict=True)
            )
            for page, place, begin, end in _pieces(address, kind.size):
                there = self._page(page)
                there[0][place : place + end - begin] = content[begin:end]
                there[1][place : place + end - begin] = kind.ones[begin:end]
        return int.from_bytes(content, "little") & kind.mask

    def region(self, address: int) -> Region | None:
        """Return the region that contains an address; None for objects from outside the module.

        Raises:
            Undefined: There is no object.
        """
        if WORLD <= address < OUTSIDE or SOLE <= address < LAST:
            if address >> REGION_BITS in self.dead:
                raise Undefined("an access to freed memory")
            return None
        if GLOBALS <= address < CODE:
            return self.region_of(address >> REGION_BITS << REGION_BITS)
        found = self.regions.get(address >> REGION_BITS)
        if found is None:
            raise Undefined("an access to no object")
        return found

    def _check(self, address: int, size: int, writes: bool = False) -> Region | None:
        region = self.region(address)
        if region is not None:
            begin = (address & ((1 << REGION_BITS) - 1)) - MIDDLE
            if begin < 0 or begin + size > region.size:
                raise Undefined("an access beyond an object")
            if writes and region.constant:
                raise Undefined("a constant is written")
        return region

    def _page(self, number: int) -> Page:
        page = self.pages.get(number)
        if page is None:
            page = self.pages[number] = bytearray(PAGE), bytearray(PAGE)
            region = self.region(number << PAGE_BITS)
            if region is not None and region.content is not None:
                begin = (number << PAGE_BITS & ((1 << REGION_BITS) - 1)) - MIDDLE
                content, marks = (whole[max(begin, 0) : begin + PAGE] for whole in region.content)
                page[0][: len(content)] = content
                page[1][: len(marks)] = marks
            elif region is not None and region.zeros:
                begin = (number << PAGE_BITS & ((1 << REGION_BITS) - 1)) - MIDDLE
                size = min(max(region.size - begin, 0), PAGE)
                page[1][:size] = bytes([KNOWN]) * size
            if region is None or not region.constant:
                self.writable[number] = page
        return page


BYTE = Kind("i8", 1, 8)


def _pieces(address: int, size: int) -> Iterator[tuple[int, int, int, int]]:
    """Split bytes at page boundaries: yield page, place in the page, begin and end of each part."""
    begin = 0
    while begin < size:
        place = (address + begin) & (PAGE - 1)
        end = min(size, begin + PAGE - place)
        yield (address + begin) >> PAGE_BITS, place, begin, end
        begin = end
