"""Effects and preconditions of transformations, as pure functions; `script` writes them out for MLIR."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from irgym.envs.linalg.actions import LOOPS, SIZES, divisors
from irgym.envs.linalg.scheduling.operations import Access, Operation, OperationKind, Program

STEPS = 8
"""Greatest number of transformations of an operation."""

PARTS = 8
"""Greatest number of parts that tiles split an operation into; each is compiled separately."""

VECTOR_POINTS = 4096
"""Greatest number of iterations that become vector operations; more take seconds to compile."""

VECTOR_TENSOR = 1024
"""Greatest number of elements of a tensor that a vectorised tile may touch."""

TILES = ("tile", "tile-parallel", "fuse")
"""Names of the transformations that tile."""

IMG2COL = frozenset({"conv_2d_nchw_fchw", "conv_2d_nhwc_hwcf"})
"""Operations that MLIR can turn into a matrix multiplication by img2col."""


@dataclass(frozen=True)
class Transformation:
    """A transformation that was applied.

    Attributes:
        name: Name of its action: `tile`, `tile-parallel`, `fuse`, `interchange`, `img2col`, `vectorise` or
            `pack`.
        numbers: Tile sizes, the order of the loops, the dimension of the lanes, or the operand.
    """

    name: str
    numbers: tuple[int, ...] = ()

    @property
    def text(self) -> str:
        """The readable form."""
        return "_".join([self.name, *map(str, self.numbers)])


@dataclass(frozen=True)
class Scheduled:
    """An operation and the transformations applied to it.

    Attributes:
        operation: The operation as it is now, within its innermost tile.
        steps: The transformations.
        tiled: Whether it has tile loops.
        parallel: Whether it is in a parallel loop, possibly a consumer's.
        consumer: Place of the operation that it was fused into; -1 for none.
        remainders: The operation on the iterations left at the ends of loops that tiles do not divide.
    """

    operation: Operation
    steps: tuple[Transformation, ...] = ()
    tiled: bool = False
    parallel: bool = False
    consumer: int = -1
    remainders: tuple[Operation, ...] = ()

    @property
    def parts(self) -> tuple[Operation, ...]:
        """The operation and its remainders, which are transformed alike."""
        return (self.operation, *self.remainders)

    @property
    def vectorised(self) -> bool:
        """Whether it was vectorised; then no further transformation applies."""
        return bool(self.steps) and self.steps[-1].name == "vectorise"

    def then(self, step: Transformation, *parts: Operation) -> "Scheduled":
        """Return the operation after one more transformation, with its new parts if they differ."""
        operation, *remainders = parts or self.parts
        steps = (*self.steps, step)
        return replace(self, operation=operation, remainders=tuple(remainders), steps=steps)


def tile_sizes(operation: Operation, parallel: bool) -> list[list[bool]]:
    """Return the mask of `SIZES` for each loop slot, shape [LOOPS][len(SIZES)].

    Parallel tiles are of equal size. A tile of the whole loop is written as 0.
    """
    allowed: list[list[bool]] = []
    for loop in range(LOOPS):
        bound = operation.bounds[loop] if loop < operation.loops else 0
        usable = bound > 1 and (operation.parallel[loop] or not parallel)
        allowed.append(
            [size == 0 or (usable and size < bound and not (parallel and bound % size)) for size in SIZES]
        )
    return allowed


def fitted(state: Scheduled, sizes: Sequence[int]) -> tuple[int, ...]:
    """Return tile sizes that split an operation into at most `PARTS` parts.

    The innermost loops may keep sizes that do not divide them; other loops get the greatest size that does.
    """
    parts, fitting = len(state.parts), list(sizes)
    for loop in reversed(range(len(fitting))):
        size, bound = fitting[loop], state.operation.bounds[loop]
        if size and bound % size:
            if 2 * parts <= PARTS:
                parts *= 2
            else:
                fitting[loop] = max(divisor for divisor in divisors(bound) if divisor <= size)
    return tuple(fitting)


def split_by(operation: Operation, sizes: Sequence[int]) -> tuple[int, int] | None:
    """Return the first loop that tiles do not divide, and the iterations that whole tiles cover, or None."""
    for loop, (size, bound) in enumerate(zip(sizes, operation.bounds, strict=True)):
        if 0 < size < bound and bound % size:
            return loop, bound - bound % size
    return None


def parts_within(operation: Operation, sizes: tuple[int, ...]) -> list[Operation]:
    """Return an operation within tiles, and its remainders within theirs, in the order of `split_by`."""
    split = split_by(operation, sizes)
    if split is None:
        return [operation.tiled(sizes)]
    first, second = operation.split(*split)
    return parts_within(first, sizes) + parts_within(second, sizes)


def can_tile(state: Scheduled) -> bool:
    """Say whether the operation can be tiled."""
    return not state.vectorised and state.operation.loops <= LOOPS and state.operation.points > 1


def can_tile_in_parallel(state: Scheduled) -> bool:
    """Say whether the operation can be tiled in parallel: once, and before any other tile."""
    tileable = can_tile(state) and not state.tiled and not state.parallel
    return tileable and any(
        bound > 1 and parallel
        for bound, parallel in zip(state.operation.bounds, state.operation.parallel, strict=True)
    )


def can_img2col(state: Scheduled) -> bool:
    """Say whether MLIR can turn the operation into a matrix multiplication."""
    operation = state.operation
    return not state.steps and operation.name in IMG2COL and all(step == 1 for step in operation.dilations)


def fusible(program: Program, operation: Operation) -> tuple[int, ...]:
    """Return the producers that can be fused into the parallel tiles of an operation.

    The operation must be the only user of the producer, through a single operand with linear indices.
    """
    loads, place = operation.loads, operation.place
    producers = [load.producer for load in loads if load.producer is not None]
    return tuple(
        load.producer
        for load in loads
        if load.producer is not None
        and load.linear
        and producers.count(load.producer) == 1
        and _alone(program.operations[load.producer], place)
        and load.producer in program.turns
        and program.operations[load.producer].store.is_projection
    )


def _alone(producer: Operation, user: int) -> bool:
    return producer.users == (user,)


def fused_into(program: Program, within: Operation) -> dict[int, Operation]:
    """Return the parts of the producers that are fused into the tiles of an operation, by place."""
    parts: dict[int, Operation] = {}
    for producer in fusible(program, within):
        load = next(load for load in within.loads if load.producer == producer)
        parts[producer] = program.operations[producer].produced_for(load.extents(within.bounds))
    return parts


def initialiser(program: Program, operation: Operation) -> int | None:
    """Return the fill that initialises an operation's result alone; None if there is none."""
    producer = operation.store.producer
    if producer is None or program.operations[producer].kind is not OperationKind.FILL:
        return None
    return producer if _alone(program.operations[producer], operation.place) else None


def can_vectorise(state: Scheduled) -> bool:
    """Say whether the innermost tile, and with it the remainders, can become vector operations.

    MLIR vectorises projections: leaving out loops of one iteration, every dimension of every tensor must be
    indexed by at most one loop, and no loop may index a tensor twice. A loop may skip elements (see
    `is_strided`), with a stride of at most 2 in the last dimension.
    """
    operation = state.operation
    if state.vectorised or not state.tiled or not operation.vectorisable:
        return False
    if operation.points > VECTOR_POINTS or operation.points < 2:
        return False
    return all(_is_vector(access, operation.bounds) for access in operation.accesses)


def can_pack(state: Scheduled, operand: int) -> bool:
    """Say whether a tile's slice of an operand can be packed: in products, once for each operand.

    The tile has to read a slice: MLIR would copy a whole operand where it is produced, for all its users. Two
    operands that are packed in a row are packed in order.
    """
    operation = state.operation
    if state.vectorised or not is_product(operation) or packed(state, operand):
        return False
    if operand == 0 and state.steps and state.steps[-1] == Transformation("pack", (1,)):
        return False
    return any(
        coefficient and loop in sliced(state)
        for form in operation.loads[operand].forms
        for loop, coefficient in enumerate(form)
    )


def sliced(state: Scheduled) -> frozenset[int]:
    """Return the current loops of an operation that its tiles have cut."""
    cut: set[int] = set()
    for step in state.steps:
        if step.name in TILES:
            cut |= {loop for loop, size in enumerate(step.numbers) if size}
        elif step.name == "interchange":
            cut = {place for place, loop in enumerate(step.numbers) if loop in cut}
    return frozenset(cut)


def packed(state: Scheduled, operand: int) -> bool:
    """Say whether the operation reads a packed copy of an operand."""
    return Transformation("pack", (operand,)) in state.steps


def _is_vector(access: Access, bounds: tuple[int, ...]) -> bool:
    if not access.linear:
        return False
    loops: list[int] = []
    elements = 1
    for dimension, form in enumerate(access.forms):
        real = tuple(coefficient if bound > 1 else 0 for coefficient, bound in zip(form, bounds, strict=True))
        used = [(loop, step) for loop, step in enumerate(real) if step]
        if used:
            (loop, step), *others = used
            furthest = 2 if dimension == len(access.forms) - 1 else step
            if others or not 1 <= step <= furthest:
                return False
            loops.append(loop)
            elements *= bounds[loop]
    return len(loops) == len(set(loops)) and elements <= VECTOR_TENSOR


def is_strided(operation: Operation) -> bool:
    """Say whether a loop of an operation skips elements of a tensor."""
    return any(
        coefficient > 1 and bound > 1
        for load in operation.loads
        for form in load.forms
        for coefficient, bound in zip(form, operation.bounds, strict=True)
    )


def is_product(operation: Operation) -> bool:
    """Say whether an operation sums products of two tensors, as vector contractions do."""
    return operation.kind in (OperationKind.MATMUL, OperationKind.CONVOLUTION) and len(operation.loads) == 2


def lanes_loop(operation: Operation, turned: bool) -> int | None:
    """Return the loop that the lanes of vectors run along; None if there is none.

    Args:
        operation: The operation to vectorise.
        turned: Whether lanes run along the result's second-last dimension instead of its last.
    """
    loops = [
        loop
        for form in operation.store.forms
        for loop, coefficient in enumerate(form)
        if coefficient and operation.bounds[loop] > 1
    ]
    return loops[-1 - turned] if len(loops) > turned else None


def contraction_order(operation: Operation, turned: bool = False) -> tuple[int, ...] | None:
    """Return the order of loops in which MLIR vectorises a product well; None to keep the present one.

    Loops of both tensors, and loops of one iteration, come first; reductions come last. Where all accesses
    are projections, MLIR forms outer products of the first tensor's loops and then the second's; in another
    order it would transpose the accumulators at each step. Otherwise, in convolutions, lanes are in the last
    loop.

    Args:
        operation: The operation to vectorise.
        turned: Whether lanes run along the result's second-last dimension instead of its last.
    """
    if not is_product(operation):
        return None
    first, second = (_loops(load) for load in operation.loads)
    projects = all(access.is_projection for access in operation.accesses)
    places = {loop: place for place, form in enumerate(operation.store.forms) for loop in _loops_of(form)}

    def group(loop: int) -> int:
        if not operation.parallel[loop]:
            return LOOPS
        if operation.bounds[loop] == 1 or (loop in first and loop in second):
            return -LOOPS
        if projects:
            return 1 if loop in first else 2
        return -places[loop] if turned else places[loop]

    order = tuple(sorted(range(operation.loops), key=lambda loop: (group(loop), loop)))
    return None if order == tuple(range(operation.loops)) else order


def _loops(access: Access) -> set[int]:
    return {loop for form in access.forms for loop in _loops_of(form)}


def _loops_of(form: Sequence[int]) -> list[int]:
    return [loop for loop, coefficient in enumerate(form) if coefficient]


def as_matmul(operation: Operation) -> Operation:
    """Return the matrix product of filters and gathered patches that img2col makes of a convolution.

    The loops are image, filter, position, term for NCHW, and image, position, filter, term for NHWC.
    """
    if operation.name == "conv_2d_nchw_fchw":
        images, filters, height, width, channels, *window = operation.bounds
        bounds = (images, filters, height * width, channels * window[0] * window[1])
        forms = {"filters": (1, 3), "patches": (0, 3, 2), "result": (0, 1, 2)}
        loads = ("filters", "patches")
    else:
        images, height, width, filters, *rest = operation.bounds
        bounds = (images, height * width, filters, rest[0] * rest[1] * rest[2])
        forms = {"filters": (3, 2), "patches": (0, 1, 3), "result": (0, 1, 2)}
        loads = ("patches", "filters")

    def access(name: str) -> Access:
        return Access(tuple(tuple(int(loop == indexed) for loop in range(4)) for indexed in forms[name]))

    return replace(
        operation,
        name="generic",
        kind=OperationKind.MATMUL,
        bounds=bounds,
        parallel=(True, True, True, False),
        loads=tuple(access(name) for name in loads),
        store=access("result"),
        strides=(),
    )
