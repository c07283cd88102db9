"""The kernel: a loop nest after register tiling, the common input of all back ends.

Three pointers (A, B, C) move through the tensors. A `Repeat` moves them forward in each iteration and back at
its end; everything else refers to elements at constant offsets from them. A `Pack` turns the pointer of an
input to a buffer in the workspace. Offsets and strides count elements.
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
    """Clears its accumulators, runs its body, and stores them or adds them to C.

    What C holds is added last: loaded first, it would keep the whole body waiting where it is in no cache.
    On a Zen 3, matrix products of 1024 x 1024 x 1024 gain 3 to 6 % by that.

    Attributes:
        accumulators: The registers, by index.
        add: Whether they are added to what C holds; otherwise they replace it.
        body: `Block` and `Repeat` without further tiles.
    """

    accumulators: tuple[Accumulator, ...]
    add: bool
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


class Move(NamedTuple):
    """Copies consecutive elements, and clears those after them.

    Attributes:
        source: Offset from the pointer of the input.
        destination: Offset from pointer C, which points into the workspace meanwhile.
        lanes: Elements that are copied.
        width: Elements that are written; those after `lanes` become 0. At most a vector.
    """

    source: int
    destination: int
    lanes: int
    width: int


@dataclass(frozen=True, slots=True)
class Copy:
    """Straight-line code of a `Pack`.

    Attributes:
        operand: The input that is packed: 0 for A, 1 for B.
        moves: What is copied.
        prefetched: Offsets from the pointer of the input to what the next copy will read; these may be beyond
            its end. They are brought near meanwhile.
    """

    operand: int
    moves: tuple[Move, ...]
    prefetched: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Pack:
    """Copies a part of an input into the workspace, and runs its body on the copy.

    Attributes:
        operand: 0 for A, 1 for B: whose pointer is that of the copy while the body runs.
        place: Where in the workspace the copy begins.
        copy: `Copy` and `Repeat`; while they run, pointer C is where the copy begins.
        body: Nodes without a further `Pack` of the same input.
    """

    operand: int
    place: int
    copy: "tuple[Node, ...]"
    body: "tuple[Node, ...]"


Node: TypeAlias = Block | Tile | Repeat | Copy | Pack


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
        workspace: Number of elements of the workspace, which holds packed inputs and is aligned to 64 bytes.
    """

    body: tuple[Node, ...]
    lanes: int
    a_vector: bool
    b_vector: bool
    sum_lanes: bool
    clear: int
    workspace: int = 0
