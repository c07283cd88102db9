"""Loop nests: scheduled contractions, independent of code generators."""

import re
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

from irgym.envs.loops.programs.contraction import Contraction


class Mark(Enum):
    """How a loop is executed. The value is the suffix in the text form of a nest."""

    PLAIN = ""
    UNROLL = "u"
    VECTORISE = "v"


@dataclass(frozen=True)
class Loop:
    """A loop over one dimension.

    Attributes:
        dim: The dimension.
        step: Increment of the dimension's index in an iteration. The span of a loop is the step of the next
            loop outside it over the same dimension, or the whole dimension. If the step does not divide the
            span, the last iteration is shorter.
        mark: How it is executed.
        packs: The inputs packed before it, `a`, `b` or `ab`: the part that the loop uses is copied into a
            contiguous buffer, in the order of use, and read from there.
    """

    dim: str
    step: int
    mark: Mark = Mark.PLAIN
    packs: str = ""


@dataclass(frozen=True)
class Nest:
    """Loops from the outermost to the innermost.

    Over each dimension, the steps decrease from the outside to the inside down to 1, and each divides the one
    before. At most one loop is vectorised; it is executed innermost, and its step is 1. Each input is packed
    at most once.
    """

    loops: tuple[Loop, ...]

    def text(self) -> str:
        """Return the canonical form, such as `m/8 pack(b) k n/32 m n:v`. Equal texts mean equal code."""
        return " ".join(
            "".join(f"pack({name}) " for name in loop.packs)
            + loop.dim
            + (f"/{loop.step}" if loop.step != 1 else "")
            + (f":{loop.mark.value}" if loop.mark.value else "")
            for loop in self.loops
        )

    @cached_property
    def parents(self) -> tuple[int | None, ...]:
        """For each loop, the position of the next loop outside it over the same dimension."""
        last: dict[str, int] = {}
        places: list[int | None] = []
        for place, loop in enumerate(self.loops):
            places.append(last.get(loop.dim))
            last[loop.dim] = place
        return tuple(places)

    def span(self, contraction: Contraction, place: int) -> int:
        """Return how much of its dimension a loop covers; its last run may cover less."""
        parent = self.parents[place]
        loop = self.loops[place]
        whole = contraction.sizes[loop.dim]
        return whole if parent is None else min(self.loops[parent].step, whole)

    def trips(self, contraction: Contraction, place: int) -> int:
        """Return the number of iterations of a loop, including a shorter last one."""
        return -(-self.span(contraction, place) // self.loops[place].step)

    def tail(self, contraction: Contraction, place: int) -> int:
        """Return the length of the shorter last iteration, 0 if there is none."""
        return self.span(contraction, place) % self.loops[place].step


def parse_nest(text: str) -> Nest:
    """Parse the text of `Nest.text`.

    Raises:
        ValueError: The text has another form.
    """
    loops: list[Loop] = []
    packs = ""
    for word in text.split():
        match = re.fullmatch(r"pack\(([ab])\)|([^/:()]+)(?:/(\d+))?(?::(\w))?", word)
        if match is None:
            raise ValueError(f"{word!r} is no loop")
        if match[1]:
            packs += match[1]
            continue
        loops.append(Loop(match[2], int(match[3] or 1), Mark(match[4] or ""), packs))
        packs = ""
    packed = packs + "".join(loop.packs for loop in loops)
    if packs or len(packed) > len(set(packed)) or any(loop.packs == "ba" for loop in loops):
        raise ValueError(f"{text!r} packs an input twice, or in vain")
    return Nest(tuple(loops))


def initial_nest(contraction: Contraction) -> Nest:
    """Return the unscheduled nest: one loop for each dimension, in the program's order.

    Dimensions of size 1 have no loop, except the last one of a program without larger ones.
    """
    dims = [dim for dim, size in contraction.dims if size > 1] or [contraction.dims[-1][0]]
    return Nest(tuple(Loop(dim, 1) for dim in dims))
