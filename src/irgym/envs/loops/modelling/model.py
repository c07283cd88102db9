"""An analytical model of the time of a nest, from the target alone.

The idea is that of Low, Igual, Smith and Quintana-Orti, "Analytical Modeling Is Enough for High-Performance
BLIS", ACM TOMS 43(2), 2016: caches keep what the loops inside use, if its size and its sets allow. There,
sizes of blocks follow for one form of products. Here, the misses of each cache are counted for any nest, so
that nests can be compared.

The unit of time is a slot: the time in which a core begins one multiply-add of vectors at its peak rate.
Lines pass between caches beside the arithmetic, so that the slowest of them counts; what waits is added.
Programs are measured in runs that follow one another: what a cache has room for is there from the run before.

The constants are rounded from a fit to 6,800 nests of 107 contractions on a Zen 4, in AVX-512 and in AVX2
code. Times of nests up to twice as slow as the best one are off by 10 and 9 % (standard deviation of the
logarithms, within a program), and choices hardly depend on them.
"""

import math
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, product
from math import prod
from operator import mul

from irgym.core.target import USUAL_CACHES, Cache, Target
from irgym.envs.loops.compiling.plan import TilePlan, plan
from irgym.envs.loops.modelling.footprints import PAGE, Footprint, footprint
from irgym.envs.loops.nest import Nest
from irgym.envs.loops.programs.contraction import Contraction

LATENCY = 8
"""Slots between multiply-adds of one accumulator: a latency of four cycles, two multiply-adds in each."""

CLOSE = 4
"""Power by which loads nearly as many as the multiply-adds delay them."""

TILE = 0.8
"""Slots to begin and to end a tile, beside its stores."""

STORE = 1.1
"""Slots of a store of a vector, and of adding it to what is there."""

COPY = 2.0
"""Slots to load and store a vector while an input is packed."""

LINES = (0.6, 2.0, 24.0)
"""Slots in which a line passes to a cache, by its level."""

SCATTERED, STREAMS = 2.0, 8
"""Factor for an input whose part in a tile lies in more pieces than prefetchers follow, and how many those
are."""

WAITS = (0.8, 3.5, 50.0)
"""Slots of waiting for such a line while an input is packed, beside which there is no arithmetic."""

TRANSLATIONS = ((64, 0.4), (1536, 2.0))
"""Entries of the two levels of a usual TLB, and slots of a page that one lacks."""

EXPOSED = 8.0
"""Factor for pages that a TLB lacks while an input is packed."""

FULL = 0.85
"""Share of a cache that what is used again may take."""

HELD = 0.9
"""Least share of its lines that the sets of a cache must have room for, so that a footprint stays."""

USUAL_WAYS = 8
"""Ways of a cache of which nothing is known."""

USUAL_LINE = 64
"""Bytes of a line of such a cache."""


def caches_of(target: Target) -> tuple[Cache, ...]:
    """Return three levels of cache, with what is usual where the target does not tell."""
    known = {cache.level: cache for cache in target.caches}
    found: list[Cache] = []
    for level, size in enumerate(USUAL_CACHES, start=1):
        cache = known.get(level, Cache(level, size))
        found.append(Cache(level, cache.size, cache.line or USUAL_LINE, cache.ways or USUAL_WAYS))
    return tuple(found)


def slots(
    contraction: Contraction, nest: Nest, target: Target, part: Mapping[str, int] | None = None
) -> float:
    """Return the modelled time of a nest on a target, in slots.

    Args:
        contraction: The program.
        nest: Its schedule.
        target: The machine.
        part: How much of dimensions to compute; all where not named.
    """
    return Model(contraction, plan(contraction, nest, target), target, part).total


@dataclass(frozen=True)
class Model:
    """The modelled time of a nest, by its parts.

    Attributes:
        contraction: The program.
        plan: How the nest is executed.
        target: The machine.
        part: How much of dimensions is computed; all where not named.
    """

    contraction: Contraction
    plan: TilePlan
    target: Target
    part: Mapping[str, int] | None = None

    @property
    def total(self) -> float:
        """The modelled time in slots."""
        return max(self.arithmetic, *self.lines) + self.tiles + self.copies + self.waits

    @cached_property
    def arithmetic(self) -> float:
        """Slots of the multiply-adds, of loads that exceed them, and of waiting for accumulators."""
        pieces = {dim: list(self._pieces(dim, size)) for dim, size in self._sizes.items()}
        total = 0.0
        for chosen in product(*pieces.values()):
            extents = {dim: extent for dim, (extent, _) in zip(pieces, chosen, strict=True)}
            count = prod(times for _, times in chosen)
            multiply_adds = self._vectors(extents, extents.keys())
            kept = self._vectors(extents, extents.keys() - self.contraction.reductions)
            loads = sum(self._vectors(extents, dims) for dims in self._dims[:2])
            begun = (multiply_adds**CLOSE + loads**CLOSE) ** (1 / CLOSE)
            total += count * max(begun, LATENCY * multiply_adds / kept)
        return total

    @cached_property
    def tiles(self) -> float:
        """Slots at the beginnings and ends of tiles."""
        return self._times[self.plan.hoist] * (
            TILE + STORE * self.plan.accumulators * (2 if self.plan.partial else 1)
        )

    @cached_property
    def copies(self) -> float:
        """Slots of packing inputs, without misses."""
        return sum(
            COPY
            * prod(self._extents[place][dim] for dim in self._dims[operand])
            / self._move(operand)
            * self._times[place]
            for place, operand in self._packed
        )

    @cached_property
    def lines(self) -> Sequence[float]:
        """Slots in which lines pass to each cache, beside the arithmetic."""
        return [
            slots * sum(map(mul, self._scattered, fetched))
            for slots, (fetched, _) in zip(LINES, self._lacking, strict=True)
        ]

    @cached_property
    def waits(self) -> float:
        """Slots of waiting for lines while inputs are packed, and for translations of pages."""
        total = sum(slots * packed for slots, (_, packed) in zip(WAITS, self._lacking, strict=True))
        for entries, slots in TRANSLATIONS:
            fetched, packed = self._lacked(Cache(0, entries * PAGE, PAGE))
            total += slots * (sum(fetched) + EXPOSED * packed)
        return total

    def missed(self, cache: Cache) -> float:
        """Return how many lines have to be fetched into a cache: pages into a TLB."""
        fetched, packed = self._lacked(cache)
        return sum(fetched) + packed

    @cached_property
    def _lacking(self) -> Sequence[tuple[list[float], float]]:
        """For each cache, how many lines of A, B and C it lacks, and how many while inputs are packed."""
        return [self._lacked(cache) for cache in caches_of(self.target)]

    def _lacked(self, cache: Cache) -> tuple[list[float], float]:
        """Return how many lines of A, B and C a cache lacks, and how many while inputs are packed.

        Runs follow one another: what the cache has room for as a whole is there from the run before.
        """
        room = FULL * cache.size / cache.line
        table = self._lines(cache.line)
        place = next((place for place in range(self._block) if sum(table[place]) <= room), self._block)
        packed = 0.0
        for at, operand in self._packed:
            source, copied = self._source(operand, at), self._used[at][operand]
            moved = source.units(cache.line) + copied.units(cache.line)
            if 0 < place > at or moved > room:
                packed += moved * self._times[at]
        return [self._conflicting(operand, place, cache, room) for operand in range(3)], packed

    @cached_property
    def _scattered(self) -> tuple[float, float, float]:
        """Factors of the misses on A, B and C by the pieces in which the part of a tile lies."""
        a, b, _ = (SCATTERED if part.runs > STREAMS else 1.0 for part in self._used[self.plan.hoist])
        return a, b, 1.0

    def _conflicting(self, operand: int, place: int, cache: Cache, room: float) -> float:
        """Return how many lines of an operand are fetched, if a cache has room from a place inwards.

        The sets of the cache may hold a share of the operand only; the rest stays for fewer loops.
        """
        fetched, left = 0.0, 1.0
        for at in range(place, self._block):
            held = min(1.0, self._used[at][operand].held(cache))
            if held >= HELD:
                return fetched + left * self._fetched(operand, at, cache.line, room)
            fetched += left * held * self._fetched(operand, at, cache.line, room)
            left *= 1.0 - held
        return fetched + left * self._fetched(operand, self._block, cache.line, room)

    def _fetched(self, operand: int, place: int, line: int, room: float) -> float:
        """Return how many lines of an operand are fetched, if the loops from a place inwards fit.

        What they use also stays while loops further out that do not index it run, where there is room for it
        beside twice what they use of the others.
        """
        if place == 0:
            return 0.0
        written = 2 if operand == 2 and self.plan.partial else 1
        dims = self._dims[operand]
        table = self._lines(line)
        least = math.inf
        for inner in range(place, self._block + 1):
            lines = table[inner]
            at, others = inner, sum(lines) - lines[operand]
            while at > 0 and self.plan.order[at - 1].dim not in dims and lines[operand] + 2 * others <= room:
                at -= 1
            least = min(least, lines[operand] * self._times[at])
        return written * least

    def _lines(self, size: int) -> Sequence[Sequence[int]]:
        """Return for each place how many lines, or pages, the loops from there inwards use of A, B and C."""
        if size not in self._counted:
            self._counted[size] = [[part.units(size) for part in parts] for parts in self._used]
        return self._counted[size]

    @cached_property
    def _counted(self) -> dict[int, Sequence[Sequence[int]]]:
        """Tables of `_lines`, by size."""
        return {}

    @property
    def _block(self) -> int:
        """Place of the straight-line block."""
        return self.plan.tile_start

    @cached_property
    def _packed(self) -> Sequence[tuple[int, int]]:
        """For each packed input: the place of the loop before which it is, and which one it is."""
        return [
            (place, "ab".index(name)) for place, loop in enumerate(self.plan.order) for name in loop.packs
        ]

    @cached_property
    def _used(self) -> Sequence[Sequence[Footprint]]:
        """For each place, what the loops from there inwards use of A, B and C: of copies where there are."""
        packed = {operand: place for place, operand in self._packed}
        return [
            [
                self._copy(operand, place)
                if packed.get(operand, place + 1) <= place
                else self._source(operand, place)
                for operand in range(3)
            ]
            for place in range(self._block + 1)
        ]

    def _copy(self, operand: int, place: int) -> Footprint:
        """Return what the loops from a place inwards use of the copy of an input: it is in their order."""
        extents = self._extents[place]
        return Footprint(prod(extents[dim] for dim in self._dims[operand]) * self._bytes[operand], ())

    def _source(self, operand: int, place: int) -> Footprint:
        """Return what the loops from a place inwards use of an unpacked operand."""
        return footprint(self.contraction.strides[operand], self._extents[place], self._bytes[operand])

    @property
    def _bytes(self) -> tuple[int, int, int]:
        return self.contraction.elements.sizes

    @cached_property
    def _dims(self) -> Sequence[Set[str]]:
        """The dimensions of A, B and C."""
        return [{dim for dim, stride in table.items() if stride} for table in self.contraction.strides]

    @cached_property
    def _extents(self) -> Sequence[Mapping[str, int]]:
        """For each place, the extent of each dimension within the loops from there inwards."""
        found = [dict.fromkeys(self._sizes, 1)]
        for loop, span in zip(reversed(self.plan.order), reversed(self._spans), strict=True):
            found.append(found[-1] | {loop.dim: max(found[-1][loop.dim], span)})
        return found[::-1]

    @cached_property
    def _times(self) -> Sequence[float]:
        """For each place, how many times the loops from there inwards run; a shorter one by its share."""
        trips = (max(1.0, span / loop.step) for loop, span in zip(self.plan.order, self._spans, strict=True))
        return list(accumulate(trips, mul, initial=1.0))

    @cached_property
    def _sizes(self) -> Mapping[str, int]:
        """How much of each dimension is computed."""
        return {**self.contraction.sizes, **(self.part or {})}

    @cached_property
    def _spans(self) -> Sequence[int]:
        """How much of its dimension each loop covers."""
        return [
            min(span, self._sizes[loop.dim])
            for loop, span in zip(self.plan.order, self.plan.spans, strict=True)
        ]

    def _pieces(self, dim: str, size: int) -> Iterator[tuple[int, int]]:
        """Yield extents of the straight-line block along a dimension, and how many blocks have each."""
        steps = [loop.step for loop in self.plan.order[: self.plan.tile_start] if loop.dim == dim]
        step = min(steps, default=size)
        if size >= step:
            yield step, size // step
        if size % step:
            yield size % step, 1

    def _vectors(self, extents: Mapping[str, int], dims: Set[str]) -> int:
        """Return the number of vectors, or of single elements, that cover some extents."""
        lanes, along = self.plan.lanes, self.plan.vector_dim
        return prod(-(-extents[dim] // lanes) if dim == along else extents[dim] for dim in dims)

    def _move(self, operand: int) -> int:
        """Return how many elements a move of a copy has."""
        if (self.plan.a_vector, self.plan.b_vector)[operand]:
            return self.plan.lanes
        if "ab"[operand] in self.plan.grouped:
            return self.plan.unroll[self.plan.tile_start - 1]
        return 1
