"""The kernel: a loop nest after register tiling, the common input of all back ends.

Three pointers (A, B, C) move through the tensors. A `Repeat` moves them forward in each iteration and back at
its end; everything else refers to elements at constant offsets from them. Offsets and strides count elements.
`Fma` and `Accumulator` are named tuples: a kernel has hundreds of them and is built in under a millisecond.
"""

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias


class Fma(NamedTuple):
    """accumulator += A[a] * B[b], over `lanes` lanes.

    Attributes:
        accumulator: Index among the accumulators of the enclosing `Tile`.
        a: Offset from pointer A.
        b: Offset from pointer B.
        lanes: Lanes that take part; the rest of the vector must not be read from memory.
    """

    accumulator: int
    a: int
    b: int
    lanes: int


class Accumulator(NamedTuple):
    """A register that holds part of the output.

    Attributes:
        c: Offset from pointer C.
        lanes: Lanes that are part of the output; 1 for a sum over lanes.
    """

    c: int
    lanes: int


@dataclass(frozen=True, slots=True)
class Block:
    """Straight-line code, inside a `Tile`.

    Attributes:
        fmas: In groups, one for each point of the reduction; a group uses each accumulator once.
    """

    fmas: tuple[Fma, ...]


@dataclass(frozen=True, slots=True)
class Tile:
    """Loads or clears its accumulators, runs its body, and stores them.

    Attributes:
        accumulators: The registers, by index.
        load: Whether they start from C; otherwise from zero.
        body: `Block` and `Repeat` without further tiles.
    """

    accumulators: tuple[Accumulator, ...]
    load: bool
    body: "tuple[Node, ...]"


@dataclass(frozen=True, slots=True)
class Repeat:
    """Runs its body `count` times (at least twice), moving the pointers by the strides after each time.

    Attributes:
        count: Number of iterations.
        strides: Elements by which A, B and C move in an iteration.
        body: What is repeated.
    """

    count: int
    strides: tuple[int, int, int]
    body: "tuple[Node, ...]"


Node: TypeAlias = Block | Tile | Repeat


@dataclass(frozen=True, slots=True)
class Kernel:
    """A whole program.

    Attributes:
        body: What runs, from pointers to the first elements of A, B and C.
        lanes: Lanes of every vector; 1 for scalar code.
        a_vector: Whether lanes step through A with stride 1; otherwise one element of A serves all lanes.
        b_vector: The same of B.
        sum_lanes: Whether the lanes run over a reduction, so that an accumulator's lanes are added up
            before it is stored into (or added to) one element of C.
        clear: Number of elements of C to set to zero first; 0 where every tile starts from zero.
    """

    body: tuple[Node, ...]
    lanes: int
    a_vector: bool
    b_vector: bool
    sum_lanes: bool
    clear: int
