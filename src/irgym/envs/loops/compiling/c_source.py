"""C source of kernels: the scheduled nest in a form that a person can read and any project can compile.

It uses the vector extensions of GCC and Clang, so it compiles for all processors: if vectors are narrower
than the kernel's, the compiler uses several.
"""

from collections.abc import Iterable, Iterator, Sequence

from irgym.envs.loops.compiling.c_types import TYPES, CTypes, definitions
from irgym.envs.loops.compiling.kernel import Block, Copy, Kernel, Node, Pack, Prefetch, Repeat, Tile
from irgym.envs.loops.nest import Nest
from irgym.envs.loops.programs.contraction import Contraction

Pointers = tuple[str, str, str, str]
"""Names of the variables that point into A, B and C, and the type behind the last: while inputs are copied,
it points into the workspace."""


def emit(kernel: Kernel, contraction: Contraction, nest: Nest, name: str) -> str:
    """Return the C source of a function that computes a contraction.

    Args:
        kernel: `nest`, lowered.
        contraction: The program; the comment at the top shows its formula and shapes.
        nest: The schedule, also shown there.
        name: Name of the function.
    """
    lines = [
        *comment(contraction, nest, name, [f"Compile: cc -O3 -march=native -c {name}.c (GCC or Clang)"]),
        "#include <stdint.h>",
        "#include <string.h>",
        "",
        *_definitions(kernel),
        *_workspace(kernel),
        signature(name, contraction),
        "{",
        *(
            []
            if kernel.inputs > 1
            else [f"    static const {_input(kernel)} b[1] = {{{_types(kernel).unit}}};"]
        ),
        *_indented(_body(kernel)),
        "}",
    ]
    return "\n".join(lines) + "\n"


def signature(name: str, contraction: Contraction) -> str:
    """Return the declaration of the function, without the semicolon; a B that is the number 1 is left out."""
    types = TYPES[contraction.elements.name]
    inputs = ", ".join(f"const {types.input} *restrict {tensor}" for tensor in "ab"[: contraction.inputs])
    return f"void {name}({inputs}, {types.sum} *restrict c)"


def comment(contraction: Contraction, nest: Nest, name: str, notes: Iterable[str]) -> list[str]:
    """Return the comment at the top of a file: the computation, and how to use the function.

    Args:
        contraction: The program.
        nest: Its schedule.
        name: Name of the function.
        notes: More lines.
    """
    types = TYPES[contraction.elements.name]
    shown = [
        f"{tensor}: {types.sum if tensor == 'c' else types.input}{''.join(f'[{extent}]' for extent in shape)}"
        for tensor, shape in zip("abc", contraction.shapes, strict=True)
        if tensor != "b" or contraction.inputs > 1
    ]
    other = "neither A nor B" if contraction.inputs > 1 else "no other tensor"
    lines = [
        f"{contraction.statement}, summed into a C of zeros.",
        "",
        f"Program: {contraction.uri}",
        f"Schedule: {nest.text()}",
        *notes,
        "",
        f"{signature(name, contraction)};",
        f"    {', '.join(shown)}, row-major.",
        *([f"    {types.note}"] if types.note else []),
        f"    What C held before does not matter. C may overlap {other}. No alignment is required.",
    ]
    return ["/*", *(f" * {line}".rstrip() for line in lines), " */"]


def _definitions(kernel: Kernel) -> list[str]:
    """Return the types and macros that the body uses."""
    total = _pairwise([f"(v)[{lane}]" for lane in range(kernel.lanes)]) if kernel.sum_lanes else ""
    return definitions(kernel.elements, kernel.lanes, _has_tails(kernel), total)


def _types(kernel: Kernel) -> CTypes:
    return TYPES[kernel.elements.name]


def _input(kernel: Kernel) -> str:
    return _types(kernel).input


def _workspace(kernel: Kernel) -> list[str]:
    """Return the declaration of the memory for packed inputs, thread-local."""
    if not kernel.workspace:
        return []
    return [
        "/* Copies of parts of the inputs, in the order of use, for each thread. */",
        f"static _Thread_local {_input(kernel)} workspace[{kernel.workspace}] __attribute__((aligned(64)));",
        "",
    ]


def _has_tails(kernel: Kernel) -> bool:
    return any(lanes < kernel.lanes for lanes in _widths(kernel, kernel.body))


def _widths(kernel: Kernel, nodes: Sequence[Node]) -> Iterator[int]:
    """Yield the number of lanes of each load and store of a vector."""
    for node in nodes:
        match node:
            case Block():
                yield from (fma.lanes for fma in node.fmas)
            case Copy():
                for move in node.moves:
                    yield from (move.lanes, move.width)
            case Tile():
                if not kernel.sum_lanes:
                    yield from (accumulator.lanes for accumulator in node.accumulators)
                yield from _widths(kernel, node.body)
            case Pack():
                yield from _widths(kernel, (*node.copy, *node.body))
            case Repeat():
                yield from _widths(kernel, node.body)
            case Prefetch():
                pass


def _pairwise(terms: list[str]) -> str:
    """Return the sum of the terms as a tree, whose additions the processor can overlap."""
    if len(terms) == 1:
        return terms[0]
    half = len(terms) // 2
    return f"({_pairwise(terms[:half])} + {_pairwise(terms[half:])})"


def _indented(lines: Iterable[str]) -> Iterator[str]:
    return ("    " + line for line in lines)


def _body(kernel: Kernel) -> Iterator[str]:
    if kernel.clear:
        yield f"memset(c, 0, {kernel.clear} * sizeof({_types(kernel).sum}));"
    yield from _nodes(kernel, kernel.body, ("a", "b", "c", _types(kernel).sum), 1)


def _nodes(kernel: Kernel, nodes: Sequence[Node], pointers: Pointers, depth: int) -> Iterator[str]:
    for node in nodes:
        match node:
            case Block():
                yield from _block(kernel, node, pointers)
            case Tile():
                yield from _tile(kernel, node, pointers, depth)
            case Repeat():
                yield from _repeat(kernel, node, pointers, depth)
            case Pack():
                yield from _pack(kernel, node, pointers, depth)
            case Copy():
                yield from _copy(kernel, node, pointers)
            case Prefetch(operand, offsets):
                how = "1, 3" if operand == 2 else "0, 2"
                yield from (f"__builtin_prefetch({pointers[operand]} + {at}, {how});" for at in offsets)


def _pack(kernel: Kernel, pack: Pack, pointers: Pointers, depth: int) -> Iterator[str]:
    name = f"{'padded' if pack.pads else 'packed'}_{'ab'[pack.operand]}"
    yield "{"
    yield f"    {_input(kernel)} *const {name} = workspace + {pack.place};"
    copied = pointers[0], pointers[1], name, _input(kernel)
    yield from _indented(_nodes(kernel, pack.copy, copied, depth))
    a, b = (name if place == pack.operand else pointers[place] for place in range(2))
    yield from _indented(_nodes(kernel, pack.body, (a, b, *pointers[2:]), depth))
    yield "}"


def _copy(kernel: Kernel, copy: Copy, pointers: Pointers) -> Iterator[str]:
    for source, destination, lanes, width in copy.moves:
        zero = "0" if kernel.lanes == 1 else f"({_raw(kernel)}){{0}}"
        value = _load(kernel, pointers[copy.operand], source, lanes, raw=True) if lanes else zero
        yield _store(kernel, pointers[2], destination, width, value, raw=True)


def _raw(kernel: Kernel) -> str:
    """Return the type of a vector of inputs."""
    return "raw" if _types(kernel).widen else "vec"


def _repeat(kernel: Kernel, repeat: Repeat, pointers: Pointers, depth: int) -> Iterator[str]:
    index = f"i{depth}"
    yield f"for (int64_t {index} = 0; {index} < {repeat.count}; ++{index}) {{"
    inner: list[str] = []
    for tensor, pointer, stride in zip("abc", pointers[:3], repeat.strides, strict=True):
        inner.append(f"{tensor}{depth}" if stride else pointer)
        if stride:
            kind = pointers[3] if tensor == "c" else f"const {_input(kernel)}"
            moved = index if stride == 1 else f"{index} * {stride}"
            yield f"    {kind} *{tensor}{depth} = {pointer} + {moved};"
    a, b, c = inner
    yield from _indented(_nodes(kernel, repeat.body, (a, b, c, pointers[3]), depth + 1))
    yield "}"


def _tile(kernel: Kernel, tile: Tile, pointers: Pointers, depth: int) -> Iterator[str]:
    c = pointers[2]
    types = _types(kernel)
    zero, kind = (types.zero, types.sum) if kernel.lanes == 1 else ("{0}", "vec")
    yield "{"
    for index in range(len(tile.accumulators)):
        yield f"    {kind} s{index} = {zero};"
    yield from _indented(_nodes(kernel, tile.body, pointers, depth))
    for index, (offset, lanes) in enumerate(tile.accumulators):
        if kernel.sum_lanes:
            yield f"    {c}[{offset}] {'+=' if tile.add else '='} SUM(s{index});"
        else:
            before = f"{_load(kernel, c, offset, lanes)} + " if tile.add else ""
            yield "    " + _store(kernel, c, offset, lanes, f"{before}s{index}")
    yield "}"


def _store(kernel: Kernel, pointer: str, offset: int, lanes: int, value: str, raw: bool = False) -> str:
    """Return a store of sums, or of inputs as they are."""
    if kernel.lanes == 1:
        return f"{pointer}[{offset}] = {value};"
    of = "_RAW" if raw and _types(kernel).widen else ""
    if lanes < kernel.lanes:
        return f"STORE{of}_FIRST({lanes}, {pointer} + {offset}, {value});"
    return f"STORE{of}({pointer} + {offset}, {value});"


def _load(kernel: Kernel, pointer: str, offset: int, lanes: int, raw: bool = False) -> str:
    """Return a load of sums, or of inputs as they are."""
    if kernel.lanes == 1:
        return f"{pointer}[{offset}]"
    of = "_RAW" if raw and _types(kernel).widen else ""
    return (
        f"LOAD{of}({pointer} + {offset})"
        if lanes == kernel.lanes
        else f"LOAD{of}_FIRST({lanes}, {pointer} + {offset})"
    )


def _block(kernel: Kernel, block: Block, pointers: Pointers) -> Iterator[str]:
    """Write straight-line code; vector operands get names, x for A and y for B."""
    named: dict[tuple[str, int, int], str] = {}
    lines: list[str] = []

    widened = bool(_types(kernel).widen)

    def operand(letter: str, pointer: str, offset: int, lanes: int, vector: bool) -> str:
        element = f"widen({pointer}[{offset}])" if widened else f"{pointer}[{offset}]"
        if vector and kernel.lanes > 1:
            value = _load(kernel, pointer, offset, lanes, raw=True)
            value = f"WIDEN({value})" if widened else value
        elif kernel.sum_lanes and lanes < kernel.lanes:
            # Inactive lanes are zero in both operands: zero times infinity would spoil their sum.
            value = "{" + ", ".join([element] * lanes) + "}"
        else:
            return element
        key = letter, offset, lanes
        if key not in named:
            named[key] = f"{letter}{len(named)}"
            lines.append(f"    const vec {named[key]} = {value};")
        return named[key]

    for index, a, b, lanes in block.fmas:
        x = operand("x", pointers[0], a, lanes, kernel.a_vector)
        y = operand("y", pointers[1], b, lanes, kernel.b_vector)
        lines.append(f"    s{index} += {x} * {y};")
    yield "{"
    yield from lines
    yield "}"
