"""C source of kernels: the scheduled nest in a form that a person can read and any project can compile.

It uses the vector extensions of GCC and Clang, so it compiles for all processors: if vectors are narrower
than the kernel's, the compiler uses several. Only loads and stores of a vector's first lanes have variants.
"""

from collections.abc import Iterable, Iterator, Sequence

from irgym.envs.loops.compiling.kernel import Block, Copy, Kernel, Node, Pack, Repeat, Tile
from irgym.envs.loops.nest import Nest
from irgym.envs.loops.programs.contraction import Contraction

Pointers = tuple[str, str, str]
"""Names of the variables that point into A, B and C."""

_VECTORS = """\
/* Vectors as values, and as they lie in memory: aligned like a float. */
typedef float vec __attribute__((vector_size({size})));
typedef float vec_in_memory __attribute__((vector_size({size}), aligned(4), may_alias));
#define LOAD(p) (*(const vec_in_memory *)(p))
#define STORE(p, v) (*(vec_in_memory *)(p) = (v))"""

_FIRST = """\
/* The first n lanes of a vector; the others are zero after loading, and their memory is never touched. */
{masked}#define LOAD_FIRST(n, p) ({{ vec v_ = {{0}}; memcpy(&v_, (p), (n) * sizeof(float)); v_; }})
#define STORE_FIRST(n, p, v) do {{ const vec v_ = (v); memcpy((p), &v_, (n) * sizeof(float)); }} while (0)
{end}"""

_MASKED = {
    16: """\
#if defined(__AVX512F__)
#include <immintrin.h>
#define LOAD_FIRST(n, p) ((vec)_mm512_maskz_loadu_ps((__mmask16)((1u << (n)) - 1), (p)))
#define STORE_FIRST(n, p, v) _mm512_mask_storeu_ps((p), (__mmask16)((1u << (n)) - 1), (__m512)(v))
#else
""",
    8: """\
#if defined(__AVX__)
#include <immintrin.h>
typedef int32_t lanes __attribute__((vector_size(32)));
#define FIRST(n) ((__m256i)((lanes){0, 1, 2, 3, 4, 5, 6, 7} < (lanes){n, n, n, n, n, n, n, n}))
#define LOAD_FIRST(n, p) ((vec)_mm256_maskload_ps((p), FIRST(n)))
#define STORE_FIRST(n, p, v) _mm256_maskstore_ps((p), FIRST(n), (__m256)(v))
#else
""",
}
"""By number of lanes: macros with masked loads and stores, for processors that have them."""


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
        signature(name),
        "{",
        *_indented(_body(kernel)),
        "}",
    ]
    return "\n".join(lines) + "\n"


def signature(name: str) -> str:
    """Return the declaration of the function, without the semicolon."""
    return f"void {name}(const float *restrict a, const float *restrict b, float *restrict c)"


def comment(contraction: Contraction, nest: Nest, name: str, notes: Iterable[str]) -> list[str]:
    """Return the comment at the top of a file: the computation, and how to use the function.

    Args:
        contraction: The program.
        nest: Its schedule.
        name: Name of the function.
        notes: More lines.
    """
    a, b, c = ("".join(f"[{extent}]" for extent in shape) for shape in contraction.shapes)
    lines = [
        f"{contraction.statement}, summed into a C of zeros.",
        "",
        f"Program: {contraction.uri}",
        f"Schedule: {nest.text()}",
        *notes,
        "",
        f"{signature(name)};",
        f"    a: float{a}, b: float{b}, c: float{c}, row-major.",
        "    What C held before does not matter. C may overlap neither A nor B. No alignment is required.",
    ]
    return ["/*", *(f" * {line}".rstrip() for line in lines), " */"]


def _definitions(kernel: Kernel) -> list[str]:
    """Return the types and macros that the body uses."""
    if kernel.lanes == 1:
        return []
    parts = [_VECTORS.format(size=4 * kernel.lanes)]
    if _has_tails(kernel):
        masked = _MASKED.get(kernel.lanes, "")
        parts.append(_FIRST.format(masked=masked, end="#endif\n" if masked else ""))
    if kernel.sum_lanes:
        parts.append(f"#define SUM(v) {_pairwise([f'(v)[{lane}]' for lane in range(kernel.lanes)])}\n")
    return ["\n".join(parts)]


def _workspace(kernel: Kernel) -> list[str]:
    """Return the declaration of the memory for packed inputs, thread-local."""
    if not kernel.workspace:
        return []
    return [
        "/* Copies of parts of the inputs, in the order of use, for each thread. */",
        f"static _Thread_local float workspace[{kernel.workspace}] __attribute__((aligned(64)));",
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
        yield f"memset(c, 0, {kernel.clear} * sizeof(float));"
    yield from _nodes(kernel, kernel.body, ("a", "b", "c"), 1)


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


def _pack(kernel: Kernel, pack: Pack, pointers: Pointers, depth: int) -> Iterator[str]:
    name = f"packed_{'ab'[pack.operand]}"
    yield "{"
    yield f"    float *const {name} = workspace + {pack.place};"
    yield from _indented(_nodes(kernel, pack.copy, (pointers[0], pointers[1], name), depth))
    a, b = (name if place == pack.operand else pointers[place] for place in range(2))
    yield from _indented(_nodes(kernel, pack.body, (a, b, pointers[2]), depth))
    yield "}"


def _copy(kernel: Kernel, copy: Copy, pointers: Pointers) -> Iterator[str]:
    for offset in copy.prefetched:
        yield f"__builtin_prefetch({pointers[copy.operand]} + {offset}, 0, 2);"
    for source, destination, lanes, width in copy.moves:
        value = _load(kernel, pointers[copy.operand], source, lanes)
        yield _store(kernel, pointers[2], destination, width, value)


def _repeat(kernel: Kernel, repeat: Repeat, pointers: Pointers, depth: int) -> Iterator[str]:
    index = f"i{depth}"
    yield f"for (int64_t {index} = 0; {index} < {repeat.count}; ++{index}) {{"
    inner: list[str] = []
    for tensor, pointer, stride in zip("abc", pointers, repeat.strides, strict=True):
        inner.append(f"{tensor}{depth}" if stride else pointer)
        if stride:
            kind = "float" if tensor == "c" else "const float"
            moved = index if stride == 1 else f"{index} * {stride}"
            yield f"    {kind} *{tensor}{depth} = {pointer} + {moved};"
    a, b, c = inner
    yield from _indented(_nodes(kernel, repeat.body, (a, b, c), depth + 1))
    yield "}"


def _tile(kernel: Kernel, tile: Tile, pointers: Pointers, depth: int) -> Iterator[str]:
    c = pointers[2]
    zero, kind = ("0.0f", "float") if kernel.lanes == 1 else ("{0}", "vec")
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


def _store(kernel: Kernel, pointer: str, offset: int, lanes: int, value: str) -> str:
    if kernel.lanes == 1:
        return f"{pointer}[{offset}] = {value};"
    if lanes < kernel.lanes:
        return f"STORE_FIRST({lanes}, {pointer} + {offset}, {value});"
    return f"STORE({pointer} + {offset}, {value});"


def _load(kernel: Kernel, pointer: str, offset: int, lanes: int) -> str:
    if kernel.lanes == 1:
        return f"{pointer}[{offset}]"
    return (
        f"LOAD({pointer} + {offset})"
        if lanes == kernel.lanes
        else f"LOAD_FIRST({lanes}, {pointer} + {offset})"
    )


def _block(kernel: Kernel, block: Block, pointers: Pointers) -> Iterator[str]:
    """Write straight-line code; vector operands get names, x for A and y for B."""
    named: dict[tuple[str, int, int], str] = {}
    lines: list[str] = []

    def operand(letter: str, pointer: str, offset: int, lanes: int, vector: bool) -> str:
        if vector and kernel.lanes > 1:
            value = _load(kernel, pointer, offset, lanes)
        elif kernel.sum_lanes and lanes < kernel.lanes:
            # Inactive lanes are zero in both operands: zero times infinity would spoil their sum.
            value = "{" + ", ".join([f"{pointer}[{offset}]"] * lanes) + "}"
        else:
            return f"{pointer}[{offset}]"
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
