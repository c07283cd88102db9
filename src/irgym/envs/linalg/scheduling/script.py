"""A schedule as a transform-dialect script, which `mlir-opt --transform-interpreter` runs too.

Operations are found by the attribute that numbers them. They are written from the last to the first, in the
order in which they were scheduled: a producer is fused before its own turn comes.
"""

from collections.abc import Sequence

from irgym.envs.linalg.scheduling.operations import Program
from irgym.envs.linalg.scheduling.transformations import (
    Scheduled,
    Transformation,
    contraction_order,
    fusible,
    initialiser,
)

ANY = "!transform.any_op"

MARK = "irgym_op"
"""Attribute that numbers a program's operations."""


def transform_module(body: str) -> str:
    """Return a transform-dialect module whose main sequence has that body and the payload `%module`."""
    return (
        "module attributes {transform.with_named_sequence} {\n"
        f"  transform.named_sequence @__transform_main(%module: {ANY}) {{\n"
        f"{body}"
        "    transform.yield\n"
        "  }\n"
        "}\n"
    )


def script(program: Program, states: Sequence[Scheduled]) -> str:
    """Return the transform module of a schedule; empty where nothing is transformed."""
    writer = _Writer(program, states)
    for place in range(len(states) - 1, -1, -1):
        for number, step in enumerate(states[place].steps):
            writer.write(place, number, step)
    return transform_module(writer.text) if writer.lines else ""


class _Writer:
    """Writes one transformation after the other, and keeps the handles of the operations."""

    def __init__(self, program: Program, states: Sequence[Scheduled]) -> None:
        self.lines: list[str] = []
        self._program = program
        self._states = tuple(states)
        self._handles: dict[int, str] = {}
        self._generic: set[int] = set()
        self._names = 0

    @property
    def text(self) -> str:
        """The body of the sequence."""
        return "".join(f"    {line}\n" for line in self.lines)

    def write(self, place: int, number: int, step: Transformation) -> None:
        """Write one transformation of one operation.

        Args:
            place: The operation.
            number: Place of the step among the operation's steps.
            step: The transformation.
        """
        if step.name == "tile":
            self._tile(place, step.numbers)
        elif step.name in ("tile-parallel", "fuse"):
            self._tile_in_parallel(place, step)
        elif step.name == "interchange":
            self._interchange(place, step.numbers)
        elif step.name == "img2col":
            self._img2col(place)
        else:
            self._vectorise(place, turned=step.numbers == (1,))

    def _fresh(self, stem: str) -> str:
        self._names += 1
        return f"%{stem}{self._names}"

    def _handle(self, place: int) -> str:
        """Return the handle of an operation, matching it on first use."""
        if place not in self._handles:
            name = self._handles[place] = f"%op{place}"
            self.lines.append(
                f"{name} = transform.structured.match attributes {{{MARK} = {place} : i64}} in %module "
                f": ({ANY}) -> {ANY}"
            )
        return self._handles[place]

    def _tile(self, place: int, sizes: Sequence[int]) -> None:
        old, new, loops = self._handle(place), self._fresh("tile"), self._fresh("loops")
        count = sum(size > 0 for size in sizes)
        results = ", ".join([ANY] * (count + 1))
        self.lines.append(
            f"{new}, {loops}:{count} = transform.structured.tile_using_for {old} "
            f"tile_sizes {list(sizes)} : ({ANY}) -> ({results})"
        )
        self._handles[place] = new

    def _tile_in_parallel(self, place: int, step: Transformation) -> None:
        old, new, loop = self._handle(place), self._fresh("tile"), self._fresh("forall")
        self.lines.append(
            f"{new}, {loop} = transform.structured.tile_using_forall {old} "
            f"tile_sizes {list(step.numbers)} : ({ANY}) -> ({ANY}, {ANY})"
        )
        self._handles[place] = new
        fused = fusible(self._program, self._states, place) if step.name == "fuse" else ()
        fills = [initialiser(self._program, self._states, one) for one in (place, *fused)]
        for producer in (*fused, *(fill for fill in fills if fill is not None)):
            inner, outer = self._fresh("fused"), self._fresh("forall")
            self.lines.append(
                f"{inner}, {outer} = transform.structured.fuse_into_containing_op {self._handle(producer)} "
                f"into {loop} : ({ANY}, {ANY}) -> ({ANY}, {ANY})"
            )
            self._handles[producer], loop = inner, outer

    def _generalise(self, place: int) -> str:
        """Return the handle of an operation in generic form."""
        if place not in self._generic and self._program.operations[place].name != "generic":
            old, new = self._handle(place), self._fresh("generic")
            self.lines.append(f"{new} = transform.structured.generalize {old} : ({ANY}) -> {ANY}")
            self._handles[place] = new
        self._generic.add(place)
        return self._handle(place)

    def _interchange(self, place: int, order: Sequence[int]) -> None:
        old, new = self._generalise(place), self._fresh("order")
        self.lines.append(
            f"{new} = transform.structured.interchange {old} iterator_interchange = {list(order)} "
            f": ({ANY}) -> {ANY}"
        )
        self._handles[place] = new

    def _img2col(self, place: int) -> None:
        old, patches, product = self._handle(place), self._fresh("patches"), self._fresh("product")
        expanded = self._fresh("expanded")
        self.lines.append(
            f"{patches}, {expanded} = transform.structured.convert_conv2d_to_img2col {old} "
            f": ({ANY}) -> ({ANY}, {ANY})"
        )
        self.lines.append(f"{product} = transform.get_producer_of_operand {expanded}[0] : ({ANY}) -> {ANY}")
        self._handles[place] = product
        self._generic.add(place)

    def _vectorise(self, place: int, turned: bool) -> None:
        """Vectorise the innermost tile, without its loops of one iteration where MLIR cannot do with them.

        Args:
            place: The operation.
            turned: Whether accumulators are kept transposed. They are where MLIR sees the transposition
                before it hoists them out of the reduction loops.
        """
        operation = self._states[place].operation
        order = contraction_order(operation)
        if order is not None:
            self._interchange(place, order)
        projects = all(access.is_projection for access in operation.accesses)
        # MLIR drops the loops of one iteration of generic operations only.
        inner, loop = self._handle(place) if projects else self._generalise(place), self._fresh("loop")
        if turned or not projects:
            self.lines.append(
                f'{loop} = transform.get_parent_op {inner} {{op_name = "scf.for"}} : ({ANY}) -> {ANY}'
            )
        if not projects:
            self._patterns(loop, "linalg.fold_unit_extent_dims_via_slices", "canonicalization")
            inner = self._fresh("inner")
            self.lines.append(
                f'{inner} = transform.structured.match ops{{["linalg.generic"]}} in {loop} : ({ANY}) -> {ANY}'
            )
        self.lines.append(f"transform.structured.vectorize {inner} : {ANY}")
        if turned:
            self._patterns(loop, "vector.reduction_to_contract", "vector.transfer_permutation_patterns")

    def _patterns(self, target: str, *names: str) -> None:
        self.lines += [
            f"transform.apply_patterns to {target} {{",
            *(f"  transform.apply_patterns.{name}" for name in names),
            f"}} : {ANY}",
        ]
