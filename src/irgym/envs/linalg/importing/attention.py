"""torch-mlir's attention operation, rewritten to operations of linalg. Within `mlir`."""

from collections.abc import Sequence
from typing import Any

from irgym.envs.linalg.compiling.bindings import ir
from irgym.envs.linalg.compiling.contexts import run_passes
from irgym.envs.linalg.importing.cleaning import operations
from irgym.envs.linalg.scheduling.operations import NARROW

ATTENTION = "tm_tensor.attention"
"""Name of the operation; its operands are queries, keys, values, an optional mask, and the result."""


def write_attention(module: Any) -> None:
    """Rewrite each attention to products, maxima, exponentials and sums, in place."""
    found = [operation for operation in operations(module) if operation.name == ATTENTION]
    for number, operation in enumerate(found):
        name = f"irgym.attention{number}"
        operands = list(operation.operands)
        scale = operation.attributes["scale"].value if "scale" in operation.attributes else None
        function = ir.Operation.parse(_function(name, [operand.type for operand in operands], scale))
        module.body.append(function)
        with ir.InsertionPoint(operation):
            call = ir.Operation.create(
                "func.call",
                results=[operands[-1].type],
                operands=operands,
                attributes={"callee": ir.FlatSymbolRefAttr.get(name)},
            )
        operation.results[0].replace_all_uses_with(call.results[0])
        operation.erase()
    if found:
        run_passes(module, "inline,symbol-dce")


def _function(name: str, kinds: Sequence[Any], scale: float | None) -> str:
    """Return the text of a function that computes attention.

    Args:
        name: Name of the function.
        kinds: Types of the operands.
        scale: Factor of the scores; None for one over the square root of a key's length.
    """
    queries, *_, result = kinds
    writer = _Writer(str(queries.element_type), queries.rank - 2)
    _write_sizes(writer, kinds)
    _write_constants(writer, queries, scale)
    scores = _scaled_scores(writer, kinds)
    attended = _attended(writer, _softmax(writer, scores), kinds[2])
    returned = _as_result(writer, attended, result)
    body = "\n  ".join([*writer.lines, f"func.return {returned} : {result}"])
    arguments = ", ".join(f"%a{place}: {kind}" for place, kind in enumerate(kinds))
    return f'func.func private @"{name}"({arguments}) -> {result} {{\n  {body}\n}}'


def _write_sizes(writer: "_Writer", kinds: Sequence[Any]) -> None:
    """Write the sizes of the operands: `%n0`, ... of the queries, `%keys` and `%width`."""
    queries, keys, values = kinds[:3]
    batch = writer.batch
    writer.lines += [f"%{axis} = arith.constant {axis} : index" for axis in range(queries.rank)]
    writer.lines += [f"%n{axis} = tensor.dim %a0, %{axis} : {queries}" for axis in range(batch + 1)]
    writer.lines += [
        f"%keys = tensor.dim %a1, %{batch} : {keys}",
        f"%width = tensor.dim %a2, %{batch + 1} : {values}",
    ]


def _write_constants(writer: "_Writer", queries: Any, scale: float | None) -> None:
    """Write the scalars `%zero`, `%one`, `%least` and `%scale`."""
    wide = writer.wide
    for constant, value in (("zero", 0.0), ("one", 1.0), ("least", -3.0e38)):
        writer.lines.append(f"%{constant} = arith.constant {value:e} : {wide}")
    if scale is not None:
        writer.lines.append(f"%scale = arith.constant {scale:e} : {wide}")
        return
    writer.lines += [
        f"%last = tensor.dim %a0, %{writer.batch + 1} : {queries}",
        "%length = arith.index_cast %last : index to i64",
        f"%lengthf = arith.sitofp %length : i64 to {wide}",
        f"%root = math.sqrt %lengthf : {wide}",
        f"%scale = arith.divf %one, %root : {wide}",
    ]


_PRODUCTS = ("%x = arith.mulf %i0, %i1 : @", "%y = arith.addf %o, %x : @")
"""Body of an operation that adds up products."""


def _scaled_scores(writer: "_Writer", kinds: Sequence[Any]) -> str:
    """Write the products of queries and keys, scaled and masked; return their name."""
    queries, keys, _, *masks, _ = kinds
    front, (i, j, inner) = tuple(range(writer.batch)), writer.axes
    raw = writer.generic(
        "raw",
        writer.scores,
        [("%a0", queries, (*front, i, inner)), ("%a1", keys, (*front, j, inner))],
        writer.filled("product", writer.scores, "zero"),
        writer.whole,
        _PRODUCTS,
    )
    inputs: list[tuple[str, Any, tuple[int, ...]]] = [(raw, writer.kind(writer.scores), writer.whole)]
    if not masks:
        body = ["%y = arith.mulf %i0, %scale : @"]
    else:
        inputs.append(("%a3", masks[0], writer.whole))
        body = ["%x = arith.mulf %i0, %scale : @"]
        if str(masks[0].element_type) == "i1":
            writer.lines.append(f"%never = arith.constant {_INFINITE[writer.wide]} : {writer.wide}")
            body.append("%y = arith.select %i1, %x, %never : @")
        else:
            body.append("%y = arith.addf %x, %i1 : @")
    scaling = writer.empty("scaling", writer.scores)
    return writer.generic("scaled", writer.scores, inputs, scaling, writer.whole, body)


def _softmax(writer: "_Writer", scores: str) -> str:
    """Write the softmax of each row of scores, zeros where all are masked; return the name of the weights."""
    whole, rows = writer.whole, writer.whole[:-1]
    matrix, row = writer.kind(writer.scores), writer.kind(writer.rows)
    greatest = writer.generic(
        "greatest",
        writer.rows,
        [(scores, matrix, whole)],
        writer.filled("maxima", writer.rows, "least"),
        rows,
        ["%y = arith.maximumf %i0, %o : @"],
    )
    powers = writer.generic(
        "powers",
        writer.scores,
        [(scores, matrix, whole), (greatest, row, rows)],
        writer.empty("exponentials", writer.scores),
        whole,
        ["%x = arith.subf %i0, %i1 : @", "%y = math.exp %x : @"],
    )
    total = writer.generic(
        "total",
        writer.rows,
        [(powers, matrix, whole)],
        writer.filled("sums", writer.rows, "zero"),
        rows,
        ["%y = arith.addf %i0, %o : @"],
    )
    return writer.generic(
        "weights",
        writer.scores,
        [(powers, matrix, whole), (total, row, rows)],
        writer.empty("quotients", writer.scores),
        whole,
        [
            "%q = arith.divf %i0, %i1 : @",
            "%none = arith.cmpf oeq, %i1, %zero : @",
            "%y = arith.select %none, %zero, %q : @",
        ],
    )


def _attended(writer: "_Writer", weights: str, values: Any) -> str:
    """Write the sums of values with the weights; return their name."""
    front, (i, j, inner) = tuple(range(writer.batch)), writer.axes
    return writer.generic(
        "attended",
        writer.results,
        [
            (weights, writer.kind(writer.scores), (*front, i, inner)),
            ("%a2", values, (*front, inner, j)),
        ],
        writer.filled("results", writer.results, "zero"),
        writer.whole,
        _PRODUCTS,
    )


def _as_result(writer: "_Writer", attended: str, result: Any) -> str:
    """Write the conversion to the type of the result, where it differs; return the name."""
    kind = writer.kind(writer.results)
    if writer.wide != writer.element:
        short = kind.replace(writer.wide, writer.element)
        writer.lines.append(f"%short = arith.truncf {attended} : {kind} to {short}")
        attended, kind = "%short", short
    if kind != str(result):
        writer.lines.append(f"%given = tensor.cast {attended} : {kind} to {result}")
        attended = "%given"
    return attended


_INFINITE = {"f32": "0xFF800000", "f64": "0xFFF0000000000000"}
"""Minus infinity."""


class _Writer:
    """Writes operations on tensors of dynamic sizes.

    Attributes:
        lines: The operations so far.
        element: Element type of the operands.
        wide: Element type of the computation.
        batch: Number of leading dimensions that all tensors have.
    """

    def __init__(self, element: str, batch: int) -> None:
        self.lines: list[str] = []
        self.element = element
        self.wide = "f32" if element in NARROW else element
        self.batch = batch

    @property
    def axes(self) -> tuple[int, int, int]:
        """Loops over rows, over columns, and over the terms of a product."""
        return self.batch, self.batch + 1, self.batch + 2

    @property
    def whole(self) -> tuple[int, ...]:
        """Indices of a matrix for each batch."""
        return tuple(range(self.batch + 2))

    @property
    def rows(self) -> list[str]:
        """Sizes of a number for each query."""
        return [f"%n{axis}" for axis in range(self.batch + 1)]

    @property
    def scores(self) -> list[str]:
        """Sizes of the scores: keys for each query."""
        return [*self.rows, "%keys"]

    @property
    def results(self) -> list[str]:
        """Sizes of the result: values for each query."""
        return [*self.rows, "%width"]

    def kind(self, sizes: Sequence[str]) -> str:
        """Return the tensor type of the computation with the given sizes."""
        return f"tensor<{'?x' * len(sizes)}{self.wide}>"

    def empty(self, name: str, sizes: Sequence[str]) -> str:
        """Write an uninitialised tensor; return its name."""
        self.lines.append(f"%{name} = tensor.empty({', '.join(sizes)}) : {self.kind(sizes)}")
        return f"%{name}"

    def filled(self, name: str, sizes: Sequence[str], value: str) -> str:
        """Write a tensor filled with one value; return its name."""
        empty = self.empty(f"{name}.empty", sizes)
        kind = self.kind(sizes)
        self.lines.append(
            f"%{name} = linalg.fill ins(%{value} : {self.wide}) outs({empty} : {kind}) -> {kind}"
        )
        return f"%{name}"

    def generic(
        self,
        name: str,
        sizes: Sequence[str],
        inputs: Sequence[tuple[str, Any, tuple[int, ...]]],
        output: str,
        stored: tuple[int, ...],
        body: Sequence[str],
    ) -> str:
        """Write a generic operation; return the name of its result.

        Args:
            name: Name of the result.
            sizes: Sizes of the result.
            inputs: Name, type and indices of each tensor that it reads.
            output: Name of the tensor that it starts from.
            stored: Indices of the result.
            body: Operations that compute `%y` from `%i0`, `%i1` and `%o`; `@` stands for their type.
        """
        used = sorted({*stored, *(axis for _, _, indices in inputs for axis in indices)})
        loops = ", ".join(f"d{axis}" for axis in used)
        maps = [
            f"affine_map<({loops}) -> ({', '.join(f'd{axis}' for axis in indices)})>"
            for indices in (*(indices for _, _, indices in inputs), stored)
        ]
        kinds = ['"parallel"' if axis in stored else '"reduction"' for axis in used]
        names = ", ".join(tensor for tensor, _, _ in inputs)
        types = ", ".join(str(kind) for _, kind, _ in inputs)
        elements: list[str] = [str(kind).rsplit("x", 1)[1].rstrip(">") for _, kind, _ in inputs]
        arguments = [f"%i{place}: {element}" for place, element in enumerate(elements)]
        steps: list[str] = []
        written: list[str] = list(body)
        for place, element in enumerate(elements):
            if element in NARROW:
                steps.append(f"%w{place} = arith.extf %i{place} : {element} to {self.wide}")
                written = [step.replace(f"%i{place}", f"%w{place}") for step in written]
        steps += [step.replace("@", self.wide) for step in written]
        kind = self.kind(sizes)
        self.lines += [
            f"%{name} = linalg.generic {{indexing_maps = [{', '.join(maps)}],"
            f" iterator_types = [{', '.join(kinds)}]}} ins({names} : {types}) outs({output} : {kind}) {{",
            f"^bb0({', '.join([*arguments, f'%o: {self.wide}'])}):",
            *steps,
            f"linalg.yield %y : {self.wide}",
            f"}} -> {kind}",
        ]
        return f"%{name}"
