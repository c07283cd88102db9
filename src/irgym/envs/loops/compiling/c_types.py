"""Types and macros of C source: loads, stores and conversions of each type of elements.

Vectors are those of GCC and Clang. Only loads and stores of a vector's first lanes have variants for
instruction sets.
"""

from dataclasses import dataclass

from irgym.envs.loops.programs.elements import Elements


@dataclass(frozen=True)
class CTypes:
    """Types of C.

    Attributes:
        input: Type of the elements of A and B.
        sum: Type of the elements of C.
        zero: The number 0 of the sums.
        unit: The number 1 of the inputs.
        note: Line on the inputs in the comment at the top; empty if their type says it all.
        widen: Definition of a function from an input to the type of sums; empty if the types are the same.
        widen_vector: Expression that does so for a vector v.
    """

    input: str
    sum: str
    zero: str
    unit: str
    note: str = ""
    widen: str = ""
    widen_vector: str = ""


_BFLOAT16 = """\
static inline float widen(uint16_t bits)
{
    const uint32_t upper = (uint32_t)bits << 16;
    float number;
    memcpy(&number, &upper, sizeof number);
    return number;
}
"""

_INT8 = """\
static inline int32_t widen(int8_t number)
{
    return number;
}
"""

TYPES = {
    "f32": CTypes("float", "float", "0.0f", "1.0f"),
    "f64": CTypes("double", "double", "0.0", "1.0"),
    "bf16": CTypes(
        "uint16_t",
        "float",
        "0.0f",
        "0x3f80",
        "The numbers of a and b are bfloat16: the upper halves of float numbers.",
        _BFLOAT16,
        "((vec)(__builtin_convertvector((v), bits) << 16))",
    ),
    "i8": CTypes("int8_t", "int32_t", "0", "1", "", _INT8, "__builtin_convertvector((v), vec)"),
}
"""By the name of the elements."""

_VECTORS = """\
/* Vectors as values, and as they lie in memory: aligned like {article} {input}. */
typedef {sum} vec __attribute__((vector_size({size})));
typedef {sum} vec_in_memory __attribute__((vector_size({size}), aligned({align}), may_alias));
#define LOAD(p) (*(const vec_in_memory *)(p))
#define STORE(p, v) (*(vec_in_memory *)(p) = (v))"""

_RAW = """\
/* Vectors of inputs: as values, and as they lie in memory. */
typedef {input} raw __attribute__((vector_size({size})));
typedef {input} raw_in_memory __attribute__((vector_size({size}), aligned({align}), may_alias));
typedef uint32_t bits __attribute__((vector_size({bits})));
#define LOAD_RAW(p) (*(const raw_in_memory *)(p))
#define STORE_RAW(p, v) (*(raw_in_memory *)(p) = (v))
#define WIDEN(v) {widen}"""

_FIRST = """\
/* The first n lanes of a vector; the others are zero after loading, and their memory is never touched. */
{masked}#define LOAD_FIRST(n, p) ({{ vec v_ = {{0}}; memcpy(&v_, (p), (n) * sizeof({sum})); v_; }})
#define STORE_FIRST(n, p, v) do {{ const vec v_ = (v); memcpy((p), &v_, (n) * sizeof({sum})); }} while (0)
{end}"""

_RAW_FIRST = """\
#define LOAD_RAW_FIRST(n, p) ({{ raw v_ = {{0}}; memcpy(&v_, (p), (n) * sizeof({input})); v_; }})
#define STORE_RAW_FIRST(n, p, v) do {{ const raw v_ = (v); memcpy((p), &v_, (n) * sizeof v_[0]); }} while (0)
"""

_MASKED = {
    ("f32", 16): """\
#if defined(__AVX512F__)
#include <immintrin.h>
#define LOAD_FIRST(n, p) ((vec)_mm512_maskz_loadu_ps((__mmask16)((1u << (n)) - 1), (p)))
#define STORE_FIRST(n, p, v) _mm512_mask_storeu_ps((p), (__mmask16)((1u << (n)) - 1), (__m512)(v))
#else
""",
    ("f32", 8): """\
#if defined(__AVX__)
#include <immintrin.h>
typedef int32_t lanes __attribute__((vector_size(32)));
#define FIRST(n) ((__m256i)((lanes){0, 1, 2, 3, 4, 5, 6, 7} < (lanes){n, n, n, n, n, n, n, n}))
#define LOAD_FIRST(n, p) ((vec)_mm256_maskload_ps((p), FIRST(n)))
#define STORE_FIRST(n, p, v) _mm256_maskstore_ps((p), FIRST(n), (__m256)(v))
#else
""",
    ("f64", 8): """\
#if defined(__AVX512F__)
#include <immintrin.h>
#define LOAD_FIRST(n, p) ((vec)_mm512_maskz_loadu_pd((__mmask8)((1u << (n)) - 1), (p)))
#define STORE_FIRST(n, p, v) _mm512_mask_storeu_pd((p), (__mmask8)((1u << (n)) - 1), (__m512d)(v))
#else
""",
    ("f64", 4): """\
#if defined(__AVX__)
#include <immintrin.h>
typedef int64_t lanes __attribute__((vector_size(32)));
#define FIRST(n) ((__m256i)((lanes){0, 1, 2, 3} < (lanes){n, n, n, n}))
#define LOAD_FIRST(n, p) ((vec)_mm256_maskload_pd((p), FIRST(n)))
#define STORE_FIRST(n, p, v) _mm256_maskstore_pd((p), FIRST(n), (__m256d)(v))
#else
""",
}
"""By type and number of lanes: macros with masked loads and stores, for processors that have them."""


def definitions(elements: Elements, lanes: int, tails: bool, total: str) -> list[str]:
    """Return the types and macros of a kernel.

    Args:
        elements: Types of its elements.
        lanes: Lanes of its vectors.
        tails: Whether it loads or stores less than whole vectors.
        total: The sum of the lanes of a vector v; empty if no code adds them up.
    """
    types = TYPES[elements.name]
    parts = [types.widen] if types.widen else []
    if lanes == 1:
        return parts
    names = {"input": types.input, "sum": types.sum}
    size, align = elements.sum_bytes * lanes, elements.sum_bytes
    article = "an" if types.sum[0] in "aeiou" else "a"
    vectors = [_VECTORS.format(**(names | {"input": types.sum}), article=article, size=size, align=align)]
    if types.widen:
        raw = {"size": elements.bytes * lanes, "align": elements.bytes, "bits": 4 * lanes}
        vectors.append(_RAW.format(**names, **raw, widen=types.widen_vector))
    if tails:
        masked = _MASKED.get((elements.name, lanes), "")
        vectors.append(_FIRST.format(**names, masked=masked, end="#endif\n" if masked else ""))
        if types.widen:
            vectors.append(_RAW_FIRST.format(**names))
    if total:
        vectors.append(f"#define SUM(v) {total}\n")
    return [*parts, "\n".join(vectors)]
