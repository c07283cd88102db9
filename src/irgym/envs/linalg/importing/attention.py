"""torch-mlir's attention, which it has as one operation, in operations of linalg. Within `mlir`."""

from collections.abc import Sequence
from typing import Any

from irgym.envs.linalg.compiling.bindings import ir
from irgym.envs.linalg.compiling.compiler import run_passes
from irgym.envs.linalg.importing.cleaning import operations
from irgym.envs.linalg.scheduling.operations import NARROW

ATTENTION = "tm_tensor.attention"
"""Name of the operation. Its operands are queries, keys, values, perhaps a mask, and the result."""


def write_attention(module: Any) -> None:
    """Write each attention as products, maxima, exponentials and sums, in place."""
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
        name: Its name.
        kinds: Types of the operands.
        scale: What scores are multiplied by; None for one by the square root of the length of a key.
    """
    queries, keys, values, *masks, result = kinds
    element = str(queries.element_type)
    batch = queries.rank - 2
    writer = _Writer(element, "f32" if element in NARROW else element, batch)
    whole = (*range(batch), batch, batch + 1)
    rows = whole[:-1]
    arguments = [f"%a{place}: {kind}" for place, kind in enumerate(kinds)]
    lines = writer.lines
    lines += [f"%{axis} = arith.constant {axis} : index" for axis in range(queries.rank)]
    lines += [f"%n{axis} = tensor.dim %a0, %{axis} : {queries}" for axis in range(batch + 1)]
    lines += [
        f"%keys = tensor.dim %a1, %{batch} : {keys}",
        f"%width = tensor.dim %a2, %{batch + 1} : {values}",
    ]
    wide = writer.wide
    for own, value in (("zero", 0.0), ("one", 1.0), ("least", -3.0e38)):
        lines.append(f"%{own} = arith.constant {value:e} : {wide}")
    if scale is None:
        lines += [
            f"%last = tensor.dim %a0, %{batch + 1} : {queries}",
            "%length = arith.index_cast %last : index to i64",
            f"%lengthf = arith.sitofp %length : i64 to {wide}",
            f"%root = math.sqrt %lengthf : {wide}",
            f"%scale = arith.divf %one, %root : {wide}",
        ]
    else:
        lines.append(f"%scale = arith.constant {scale:e} : {wide}")
    sizes = [f"%n{axis}" for axis in range(batch + 1)]
    scores, row, out = ([*sizes, "%keys"], sizes, [*sizes, "%width"])
    i, j, inner = batch, batch + 1, batch + 2
    front = tuple(range(batch))
    products = ["%x = arith.mulf %i0, %i1 : @", "%y = arith.addf %o, %x : @"]
    product = writer.filled("product", scores, "zero")
    raw = writer.generic(
        "raw",
        scores,
        [("%a0", queries, (*front, i, inner)), ("%a1", keys, (*front, j, inner))],
        product,
        whole,
        products,
    )
    inputs: list[tuple[str, Any, tuple[int, ...]]] = [(raw, writer.kind(scores), whole)]
    body = ["%x = arith.mulf %i0, %scale : @"]
    if masks:
        inputs.append(("%a3", masks[0], whole))
        if str(masks[0].element_type) == "i1":
            lines.append(f"%never = arith.constant {_INFINITE[wide]} : {wide}")
            body.append("%y = arith.select %i1, %x, %never : @")
        else:
            body.append("%y = arith.addf %x, %i1 : @")
    else:
        body[0] = body[0].replace("%x", "%y", 1)
    scaled = writer.generic("scaled", scores, inputs, writer.empty("scaling", scores), whole, body)
    greatest = writer.generic(
        "greatest",
        row,
        [(scaled, writer.kind(scores), whole)],
        writer.filled("maxima", row, "least"),
        rows,
        ["%y = arith.maximumf %i0, %o : @"],
    )
    powers = writer.generic(
        "powers",
        scores,
        [(scaled, writer.kind(scores), whole), (greatest, writer.kind(row), rows)],
        writer.empty("exponentials", scores),
        whole,
        ["%x = arith.subf %i0, %i1 : @", "%y = math.exp %x : @"],
    )
    total = writer.generic(
        "total",
        row,
        [(powers, writer.kind(scores), whole)],
        writer.filled("sums", row, "zero"),
        rows,
        ["%y = arith.addf %i0, %o : @"],
    )
    weights = writer.generic(
        "weights",
        scores,
        [(powers, writer.kind(scores), whole), (total, writer.kind(row), rows)],
        writer.empty("quotients", scores),
        whole,
        [
            "%q = arith.divf %i0, %i1 : @",
            "%none = arith.cmpf oeq, %i1, %zero : @",
            "%y = arith.select %none, %zero, %q : @",
        ],
    )
    attended = writer.generic(
        "attended",
        out,
        [(weights, writer.kind(scores), (*front, i, inner)), ("%a2", values, (*front, inner, j))],
        writer.filled("results", out, "zero"),
        whole,
        products,
    )
    returned, kind = attended, writer.kind(out)
    if wide != element:
        short = kind.replace(wide, element)
        lines.append(f"%short = arith.truncf {returned} : {kind} to {short}")
        returned, kind = "%short", short
    if kind != str(result):
        lines.append(f"%given = tensor.cast {returned} : {kind} to {result}")
        returned = "%given"
    lines.append(f"func.return {returned} : {result}")
    body_text = "\n  ".join(lines)
    return f'func.func private @"{name}"({", ".join(arguments)}) -> {result} {{\n  {body_text}\n}}'


_INFINITE = {"f32": "0xFF800000", "f64": "0xFFF0000000000000"}
"""Minus infinity."""


class _Writer:
    """Writes operations on tensors of unknown sizes.

    Args:
        element: Type of the elements of the operands.
        wide: Type that is computed with.
        batch: Number of leading dimensions that all have.
    """

    def __init__(self, element: str, wide: str, batch: int) -> None:
        self.lines: list[str] = []
        self.wide = wide
        self._element = element
        self._loops = batch + 3

    def kind(self, sizes: Sequence[str]) -> str:
        """Return the type of what is computed, by its sizes."""
        return f"tensor<{'?x' * len(sizes)}{self.wide}>"

    def empty(self, name: str, sizes: Sequence[str]) -> str:
        """Write an empty tensor; return its name."""
        self.lines.append(f"%{name} = tensor.empty({', '.join(sizes)}) : {self.kind(sizes)}")
        return f"%{name}"

    def filled(self, name: str, sizes: Sequence[str], value: str) -> str:
        """Write a tensor that holds one value; return its name."""
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
        """Write an operation; return the name of its result.

        Args:
            name: What its result is called.
            sizes: Sizes of its result.
            inputs: Name, type and indices of each tensor that it reads.
            output: Name of the tensor that it begins with.
            stored: Indices of its result.
            body: What it computes, `%y` at last, of `%i0`, `%i1` and `%o`; `@` stands for their type.
        """
        used = sorted({*stored, *(axis for _, _, indices in inputs for axis in indices)})
        loops = ", ".join(f"d{axis}" for axis in used)
        maps = [
            f"affine_map<({loops}) -> ({', '.join(f'd{axis}' for axis in indices)})>"
            for indices in (*(indices for _, _, indices in inputs), stored)
        ]
        kinds = ['"parallel"' if axis in stored else '"reduction"' for axis in used]
        names = ", ".join(own for own, _, _ in inputs)
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
