"""A schedule as a transform-dialect script, which `mlir-opt --transform-interpreter` runs too.

The script matches operations by the attribute that numbers them, from the last to the first, in the order in
which they were scheduled: a producer is fused before its turn comes.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from irgym.envs.linalg.scheduling.operations import Operation, Program
from irgym.envs.linalg.scheduling.transformations import (
    Scheduled,
    Transformation,
    as_matmul,
    contraction_order,
    fused_into,
    initialiser,
    is_strided,
    lanes_loop,
    split_by,
)

ANY = "!transform.any_op"

MARK = "irgym_op"
"""Attribute that numbers a program's operations."""

PATCHES = "irgym_patches"
"""Attribute of the operation that gathers patches, for the lowering: height and width of the window, strides,
height and width of the result."""

STRIDED = "irgym_strided"
"""Attribute of operations that skip elements; the lowering vectorises them, since MLIR cannot."""


def transform_module(body: str) -> str:
    """Return a transform-dialect module whose main sequence has the given body and the payload `%module`."""
    return (
        "module attributes {transform.with_named_sequence} {\n"
        f"  transform.named_sequence @__transform_main(%module: {ANY}) {{\n"
        f"{body}"
        "    transform.yield\n"
        "  }\n"
        "}\n"
    )


def script(program: Program, states: Sequence[Scheduled]) -> str:
    """Return the transform module of a schedule; empty if nothing is transformed."""
    writer = _Writer(program, states)
    for place in range(len(states) - 1, -1, -1):
        for step in states[place].steps:
            writer.write(place, step)
    return transform_module(writer.text) if writer.lines else ""


@dataclass(frozen=True)
class _Part:
    """A part of an operation after the lines written so far.

    Attributes:
        handle: Its handle in the script.
        operation: Description of the part.
        generic: Whether it is in generic form.
    """

    handle: str
    operation: Operation
    generic: bool


class _Writer:
    """Writes transformations in order, and tracks the parts of the operations."""

    def __init__(self, program: Program, states: Sequence[Scheduled]) -> None:
        self.lines: list[str] = []
        self._program = program
        self._states = tuple(states)
        self._parts: dict[int, list[_Part]] = {}
        self._names = 0

    @property
    def text(self) -> str:
        """The body of the sequence."""
        return "".join(f"    {line}\n" for line in self.lines)

    def write(self, place: int, step: Transformation) -> None:
        """Write one transformation of one operation.

        Args:
            place: The operation.
            step: The transformation.
        """
        parts = self._parts_of(place)
        if step.name == "tile":
            parts = [tile for part in parts for tile in self._tiles(part, step.numbers)]
        elif step.name in ("tile-parallel", "fuse"):
            parts = [self._parallel_tile(parts[0], step)]
        elif step.name == "interchange":
            parts = [self._interchanged(part, step.numbers) for part in parts]
        elif step.name == "img2col":
            parts = [self._img2col(parts[0])]
        elif step.name == "pack":
            for part in parts:
                self._pack(part, step.numbers[0])
        else:
            turned = step.numbers == (1,)
            for part in parts:
                self._vectorise(part, turned)
        self._parts[place] = parts

    def _fresh(self, stem: str) -> str:
        self._names += 1
        return f"%{stem}{self._names}"

    def _parts_of(self, place: int) -> list[_Part]:
        """Return the parts of an operation, matching it on first use."""
        if place not in self._parts:
            operation, name = self._program.operations[place], f"%op{place}"
            self.lines.append(
                f"{name} = transform.structured.match attributes {{{MARK} = {place} : i64}} in %module "
                f": ({ANY}) -> {ANY}"
            )
            self._parts[place] = [_Part(name, operation, operation.name == "generic")]
        return self._parts[place]

    def _tiles(self, part: _Part, sizes: tuple[int, ...]) -> list[_Part]:
        """Tile a part, after splitting off the remainders at the ends of its loops.

        Loops outside of a split loop are tiled before the split, so that both pieces run inside their tiles;
        otherwise each piece would be a separate pass over the outer loops.
        """
        split = split_by(part.operation, sizes)
        if split is None:
            return [self._tile(part, sizes)]
        outer = tuple(size if loop < split[0] else 0 for loop, size in enumerate(sizes))
        inner = tuple(0 if loop < split[0] else size for loop, size in enumerate(sizes))
        within = self._tile(part, outer) if any(outer) else part
        return [tile for piece in self._split(within, *split) for tile in self._tiles(piece, inner)]

    def _tile(self, part: _Part, sizes: tuple[int, ...]) -> _Part:
        """Tile a part by sizes that divide its loops."""
        within = part.operation.tiled(sizes)
        clipped = [bound if size else 0 for size, bound in zip(sizes, within.bounds, strict=True)]
        new, loops, count = self._fresh("tile"), self._fresh("loops"), sum(size > 0 for size in clipped)
        results = ", ".join([ANY] * (count + 1))
        self.lines.append(
            f"{new}, {loops}:{count} = transform.structured.tile_using_for {part.handle} "
            f"tile_sizes {clipped} : ({ANY}) -> ({results})"
        )
        return replace(part, handle=new, operation=within)

    def _split(self, part: _Part, loop: int, iterations: int) -> list[_Part]:
        """Split a part into the first iterations of a loop and the rest."""
        both, first, second = self._fresh("split"), self._fresh("first"), self._fresh("rest")
        self.lines += [
            f"{both} = transform.structured.split {part.handle} after {iterations} "
            f"{{dimension = {loop} : i64}} : {ANY}",
            f"{first}, {second} = transform.split_handle {both} : ({ANY}) -> ({ANY}, {ANY})",
        ]
        pieces = zip((first, second), part.operation.split(loop, iterations), strict=True)
        return [replace(part, handle=handle, operation=piece) for handle, piece in pieces]

    def _parallel_tile(self, part: _Part, step: Transformation) -> _Part:
        """Tile a part in parallel, with the operations that are fused into the tiles."""
        new, loop = self._fresh("tile"), self._fresh("forall")
        self.lines.append(
            f"{new}, {loop} = transform.structured.tile_using_forall {part.handle} "
            f"tile_sizes {list(step.numbers)} : ({ANY}) -> ({ANY}, {ANY})"
        )
        within = part.operation.tiled(step.numbers)
        fused = fused_into(self._program, within) if step.name == "fuse" else {}
        fills = [initialiser(self._program, operation) for operation in (within, *fused.values())]
        for producer in (*fused, *(fill for fill in fills if fill is not None)):
            [other] = self._parts_of(producer)
            inner, outer = self._fresh("fused"), self._fresh("forall")
            self.lines.append(
                f"{inner}, {outer} = transform.structured.fuse_into_containing_op {other.handle} "
                f"into {loop} : ({ANY}, {ANY}) -> ({ANY}, {ANY})"
            )
            operation = fused.get(producer, other.operation)
            self._parts[producer] = [replace(other, handle=inner, operation=operation)]
            loop = outer
        return replace(part, handle=new, operation=within)

    def _generalised(self, part: _Part) -> _Part:
        """Return a part in generic form."""
        if part.generic:
            return part
        new = self._fresh("generic")
        self.lines.append(f"{new} = transform.structured.generalize {part.handle} : ({ANY}) -> {ANY}")
        return replace(part, handle=new, generic=True)

    def _interchanged(self, part: _Part, order: tuple[int, ...]) -> _Part:
        part, new = self._generalised(part), self._fresh("order")
        self.lines.append(
            f"{new} = transform.structured.interchange {part.handle} iterator_interchange = {list(order)} "
            f": ({ANY}) -> {ANY}"
        )
        return replace(part, handle=new, operation=part.operation.interchanged(order))

    def _img2col(self, part: _Part) -> _Part:
        patches, expanded, product = self._fresh("patches"), self._fresh("expanded"), self._fresh("product")
        self.lines += [
            f"{patches}, {expanded} = transform.structured.convert_conv2d_to_img2col {part.handle} "
            f": ({ANY}) -> ({ANY}, {ANY})",
            f"{product} = transform.get_producer_of_operand {expanded}[0] : ({ANY}) -> {ANY}",
        ]
        if part.operation.name == "conv_2d_nchw_fchw":
            _, _, *result, _, height, width = part.operation.bounds
            image = part.operation.loads[0]
            strides = (image.forms[2][2], image.forms[3][3])
            numbers = ", ".join(map(str, (height, width, *strides, *result)))
            geometry = self._fresh("geometry")
            self.lines += [
                f"{geometry} = transform.param.constant array<i64: {numbers}> -> !transform.any_param",
                f'transform.annotate {patches} "{PATCHES}" = {geometry} : {ANY}, !transform.any_param',
            ]
        return _Part(product, as_matmul(part.operation), generic=True)

    def _pack(self, part: _Part, operand: int) -> None:
        """Copy the slice of an operand that a part reads to separate memory, where the slice is taken."""
        read, copied = self._fresh("read"), self._fresh("copied")
        self.lines += [
            f"{read} = transform.get_operand {part.handle}[{operand}] : ({ANY}) -> !transform.any_value",
            f"{copied} = transform.structured.promote_tensor {read} : !transform.any_value",
        ]

    def _whole_vectors(self, part: _Part, turned: bool) -> list[_Part]:
        """Split a part so that lanes are powers of two; LLVM handles other vectors element by element."""
        loop = lanes_loop(part.operation, turned)
        bound = 1 if loop is None else part.operation.bounds[loop]
        power = 1 << (bound.bit_length() - 1)
        if loop is None or bound == power:
            return [part]
        first, rest = self._split(part, loop, power)
        return [first, *self._whole_vectors(rest, turned)]

    def _vectorise(self, part: _Part, turned: bool) -> None:
        """Vectorise a part, without its loops of one iteration where MLIR cannot handle them.

        Args:
            part: The part; a part of a single iteration is left unchanged.
            turned: Whether accumulators are kept transposed, which needs the transposition to be visible
                before MLIR hoists them out of the reduction loops.
        """
        if part.operation.points < 2:
            return
        # MLIR drops loops of one iteration from generic operations only.
        projects = all(access.is_projection for access in part.operation.accesses)
        pieces: list[str] = []
        for piece in self._whole_vectors(part, turned):
            order = contraction_order(piece.operation, turned)
            ordered = piece if order is None else self._interchanged(piece, order)
            pieces.append((ordered if projects else self._generalised(ordered)).handle)
        loop = self._fresh("loop")
        if turned or not projects:
            self.lines.append(
                f'{loop} = transform.get_parent_op {pieces[0]} {{op_name = "scf.for"}} : ({ANY}) -> {ANY}'
            )
        if not projects:
            self._patterns(loop, "linalg.fold_unit_extent_dims_via_slices", "canonicalization")
            inner, generics = self._fresh("inner"), 'ops{["linalg.generic"]}'
            self.lines.append(f"{inner} = transform.structured.match {generics} in {loop} : ({ANY}) -> {ANY}")
            pieces = [inner]
            if is_strided(part.operation):
                self.lines.append(f'transform.annotate {inner} "{STRIDED}" : {ANY}')
                return
        self.lines += [f"transform.structured.vectorize {piece} : {ANY}" for piece in pieces]
        if turned and projects:
            self._patterns(loop, "vector.reduction_to_contract", "vector.transfer_permutation_patterns")

    def _patterns(self, target: str, *names: str) -> None:
        self.lines += [
            f"transform.apply_patterns to {target} {{",
            *(f"  transform.apply_patterns.{name}" for name in names),
            f"}} : {ANY}",
        ]
