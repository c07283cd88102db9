"""Kernels: loop nests after register tiling, the common input of all back ends.

Three pointers (A, B, C) move through the tensors. A `Repeat` advances them in each iteration and restores
them at its end; all other nodes refer to elements at constant offsets from them. A `Pack` redirects the
pointer of an input to a buffer in the workspace. Offsets and strides count elements.

`Fma` and `Accumulator` are named tuples for speed: a kernel has hundreds and is built in under a millisecond.
"""

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from irgym.envs.loops.programs.elements import F32, Elements


class Fma(NamedTuple):
    """Multiply-add: accumulator += A[a] * B[b], over `lanes` lanes.

    Attributes:
        accumulator: Index among the accumulators of the enclosing `Tile`.
        a: Offset from pointer A.
        b: Offset from pointer B.
        lanes: Active lanes; the rest of the vector must not be read from memory.
    """

    accumulator: int
    a: int
    b: int
    lanes: int


class Accumulator(NamedTuple):
    """A register that holds part of the output.

    Attributes:
        c: Offset from pointer C.
        lanes: Lanes that belong to the output; 1 for a sum over lanes.
    """

    c: int
    lanes: int


@dataclass(frozen=True, slots=True)
class Block:
    """Straight-line code, inside a `Tile`.

    Attributes:
        fmas: FMAs, grouped by point of the reduction; a group uses each accumulator once.
    """

    fmas: tuple[Fma, ...]


@dataclass(frozen=True, slots=True)
class Tile:
    """Clears its accumulators, runs its body, and stores the accumulators or adds them to C.

    C is added last: loaded first, a cache miss on it would stall the whole body. On a Zen 3, this gains 3 to
    6 % on matrix products of 1024 x 1024 x 1024.

    Attributes:
        accumulators: The registers, by index.
        add: Whether they are added to C; otherwise they overwrite it.
        body: `Block`, `Repeat` and `Prefetch`, without tiles.
    """

    accumulators: tuple[Accumulator, ...]
    add: bool
    body: "tuple[Node, ...]"


@dataclass(frozen=True, slots=True)
class Prefetch:
    """Requests cache lines ahead of their use: those of an input into L2, those of C into L1 to be written.

    Attributes:
        operand: 0 for A, 1 for B, 2 for C.
        offsets: Offsets of the lines from its pointer; they may lie outside the tensor.
    """

    operand: int
    offsets: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """Runs its body `count` times (at least twice), advancing the pointers by the strides after each.

    Attributes:
        count: Number of iterations.
        strides: Elements by which the pointers A, B and C advance in an iteration.
        body: The repeated nodes.
    """

    count: int
    strides: tuple[int, int, int]
    body: "tuple[Node, ...]"


class Move(NamedTuple):
    """Copy of consecutive elements, padded with zeros.

    Attributes:
        source: Offset from the pointer of the input.
        destination: Offset from pointer C, which points into the workspace during a copy.
        lanes: Elements to copy; 0 to write only zeros.
        width: Elements to write, at most a vector; those after `lanes` become 0.
    """

    source: int
    destination: int
    lanes: int
    width: int


@dataclass(frozen=True, slots=True)
class Copy:
    """Straight-line copying code of a `Pack`.

    Attributes:
        operand: The packed input: 0 for A, 1 for B.
        moves: The copies.
    """

    operand: int
    moves: tuple[Move, ...]


@dataclass(frozen=True, slots=True)
class Pack:
    """Copies part of an input into the workspace, and runs its body on the copy.

    Attributes:
        operand: 0 for A, 1 for B; its pointer is redirected to the copy while the body runs.
        place: Offset of the copy in the workspace.
        copy: `Copy`, `Repeat` and `Prefetch`, which run with pointer C at the start of the copy.
        body: Nodes that run on the copy. Only a `Pack` that pads may hold another `Pack` of its input.
        pads: Whether the copy is the whole input with zeros around it.
    """

    operand: int
    place: int
    copy: "tuple[Node, ...]"
    body: "tuple[Node, ...]"
    pads: bool = False


Node: TypeAlias = Block | Tile | Repeat | Copy | Pack | Prefetch


@dataclass(frozen=True, slots=True)
class Kernel:
    """A whole program.

    Attributes:
        body: The nodes, starting with pointers to the first elements of A, B and C.
        lanes: Lanes of every vector; 1 for scalar code.
        a_vector: Whether lanes step through A with stride 1; otherwise an element of A is broadcast.
        b_vector: The same for B.
        sum_lanes: Whether the lanes run over a reduction, so that an accumulator's lanes are added up
            before it is stored into (or added to) one element of C.
        clear: Number of elements of C to clear first; 0 if every tile overwrites C.
        workspace: Number of elements of the workspace for packed inputs, which is aligned to 64 bytes.
        elements: Types of the elements.
        inputs: Number of inputs; with one, B is the number 1.
    """

    body: tuple[Node, ...]
    lanes: int
    a_vector: bool
    b_vector: bool
    sum_lanes: bool
    clear: int
    workspace: int = 0
    elements: Elements = F32
    inputs: int = 2
