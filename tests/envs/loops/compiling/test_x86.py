import ctypes
import mmap
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from irgym.envs.loops.compiling import assembler as asm
from irgym.envs.loops.compiling import avx2, avx512, x86
from irgym.envs.loops.compiling.kernel import (
    Accumulator,
    Block,
    Copy,
    Fma,
    Kernel,
    Move,
    Pack,
    Repeat,
    Tile,
)
from irgym.envs.loops.compiling.lower import lower
from irgym.envs.loops.nest import Loop, Mark, Nest, initial_nest
from irgym.envs.loops.programs.contraction import Contraction, Tensor, parse_uri

FLAGS = set(
    next((line for line in Path("/proc/cpuinfo").read_text().splitlines() if "flags" in line), "").split()
)
GENERATORS = [
    pytest.param(avx2, marks=pytest.mark.skipif(not {"avx2", "fma"} <= FLAGS, reason="needs AVX2 and FMA")),
    pytest.param(avx512, marks=pytest.mark.skipif("avx512f" not in FLAGS, reason="needs AVX-512")),
]

LIBC = ctypes.CDLL(None, use_errno=True)
PROTOTYPE = ctypes.CFUNCTYPE(
    ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p
)
PAGE = mmap.PAGESIZE


def protect(address: int, length: int, protection: int) -> None:
    assert LIBC.mprotect(ctypes.c_void_p(address), ctypes.c_size_t(length), protection) == 0


@contextmanager
def pages(length: int) -> Iterator[int]:
    """Map whole pages with an untouchable page before and after; yield the address of the first."""
    whole = -(-length // PAGE) * PAGE
    memory = mmap.mmap(-1, whole + 2 * PAGE)
    view = (ctypes.c_char * (whole + 2 * PAGE)).from_buffer(memory)
    start = ctypes.addressof(view)
    protect(start, PAGE, 0)
    protect(start + PAGE + whole, PAGE, 0)
    try:
        yield start + PAGE
    finally:
        protect(start, whole + 2 * PAGE, mmap.PROT_READ | mmap.PROT_WRITE)
        del view
        memory.close()


@contextmanager
def executable(code: bytes) -> Iterator[int]:
    with pages(len(code)) as address:
        ctypes.memmove(address, code, len(code))
        whole = -(-len(code) // PAGE) * PAGE
        protect(address, whole, mmap.PROT_READ | mmap.PROT_EXEC)
        yield address
        protect(address, whole, mmap.PROT_READ | mmap.PROT_WRITE)


@contextmanager
def guarded(values: Tensor, at_end: bool) -> Iterator[Tensor]:
    """Yield a copy next to an untouchable page: at its end, or at its beginning."""
    length = values.nbytes
    with pages(length) as address:
        start = address + (-length % PAGE if at_end else 0)
        buffer = (ctypes.c_float * values.size).from_address(start)
        array = np.frombuffer(buffer, np.float32).reshape(values.shape)
        array[...] = values
        yield array
        del array, buffer


def run(generator: ModuleType, kernel: Kernel, a: Tensor, b: Tensor, c: Tensor, repetitions: int = 1) -> None:
    empty = np.full(-(-kernel.workspace // 16) * 16, np.nan, np.float32)
    with executable(generator.emit(kernel)) as address, guarded(empty, at_end=True) as workspace:
        data = (array.ctypes.data for array in (a, b, c))
        PROTOTYPE(address)(*data, repetitions, workspace.ctypes.data)


def check(generator: ModuleType, contraction: Contraction, nest: Nest, at_end: bool = True) -> None:
    kernel = lower(contraction, nest, generator.TARGET)
    a, b = contraction.random_inputs(0)
    reduction = contraction.flops // 2 // np.prod(contraction.shapes[2])
    empty = np.full(contraction.shapes[2], np.nan, np.float32)
    with guarded(a, at_end) as a_, guarded(b, at_end) as b_, guarded(empty, at_end) as c_:
        run(generator, kernel, a_, b_, c_, repetitions=2)
        error = np.abs(c_ - contraction.reference(a, b)).max()
    assert error <= 1e-6 * (reduction + 8), f"{contraction.uri}: {nest.text()}"


@pytest.mark.parametrize("generator", GENERATORS)
@settings(max_examples=250, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), at_end=st.booleans(), prefetched=st.booleans())
def test_any_nest_computes_the_contraction(
    generator: ModuleType,
    random_contraction: Callable[[int], Contraction],
    random_nest: Callable[[Contraction, int], Nest],
    prefetching: Callable[[bool], AbstractContextManager[object]],
    seed: int,
    at_end: bool,
    prefetched: bool,
) -> None:
    contraction = random_contraction(seed)
    with prefetching(prefetched):
        check(generator, contraction, random_nest(contraction, seed), at_end)


@pytest.mark.parametrize("generator", GENERATORS)
@pytest.mark.parametrize(
    "uri",
    [
        "loops://mm/1x1x1",
        "loops://mm/33x47x65",
        "loops://mm/3x600x5",
        "loops://bmm/3x5x17x9",
        "loops://conv/1x5x6x3x33x3x3",
        "loops://conv/2x4x3x5x20x3x2?stride=2",
        "loops://einsum/mk,k->m?m=37&k=300",
        "loops://einsum/mk,nk->mn?m=5&n=7&k=700",
    ],
)
def test_the_unscheduled_nest(generator: ModuleType, uri: str) -> None:
    contraction = parse_uri(uri)
    check(generator, contraction, initial_nest(contraction))


@pytest.mark.parametrize("generator", GENERATORS)
@pytest.mark.parametrize("width", range(1, 34))
def test_every_width_of_a_tail(generator: ModuleType, width: int) -> None:
    check(generator, *parallel_tail(width))
    check(generator, *reduction_tail(width))


def parallel_tail(width: int) -> tuple[Contraction, Nest]:
    contraction = parse_uri(f"loops://mm/3x{width}x2")
    return contraction, Nest((Loop("m", 1), Loop("k", 1), Loop("n", 1, Mark.VECTORISE)))


def reduction_tail(width: int) -> tuple[Contraction, Nest]:
    contraction = parse_uri(f"loops://einsum/mk,nk->mn?m=3&n=2&k={width}")
    return contraction, Nest((Loop("m", 1), Loop("n", 1), Loop("k", 1, Mark.VECTORISE)))


@pytest.mark.parametrize("generator", GENERATORS)
def test_lanes_outside_a_sum_do_not_turn_infinity_into_nan(generator: ModuleType) -> None:
    contraction = parse_uri("loops://einsum/mk,n->mn?m=2&n=3&k=5")
    nest = Nest((Loop("n", 1), Loop("m", 1), Loop("k", 1, Mark.VECTORISE)))
    a, b = np.ones((2, 5), np.float32), np.full(3, np.inf, np.float32)
    c = np.zeros((2, 3), np.float32)
    run(generator, lower(contraction, nest, generator.TARGET), a, b, c)
    assert np.isposinf(c).all()


def deep_kernel(depth: int, width: int = 8) -> Kernel:
    """Return a kernel that adds A[0] * B[0..width] to C, 2**depth times."""
    node: Repeat | Block = Block((Fma(0, 0, 0, width),))
    for _ in range(depth):
        node = Repeat(2, (0, 0, 0), (node,))
    tile = Tile((Accumulator(0, width),), add=False, body=(node,))
    return Kernel((tile,), lanes=width, a_vector=False, b_vector=True, sum_lanes=False, clear=0)


@pytest.mark.parametrize("generator", GENERATORS)
@pytest.mark.parametrize("depth", [1, 6, len(x86.COUNTERS), len(x86.COUNTERS) + 3])
def test_nests_deeper_than_the_counters(generator: ModuleType, depth: int) -> None:
    width = generator.TARGET.lanes
    a, b, c = np.ones(1, np.float32), np.arange(width, dtype=np.float32), np.zeros(width, np.float32)
    run(generator, deep_kernel(depth, width), a, b, c, repetitions=3)
    np.testing.assert_array_equal(c, b * 2**depth)


@pytest.mark.parametrize("generator", GENERATORS)
@pytest.mark.parametrize("register", sorted(x86.CALLEE_SAVED))
def test_callee_saved_registers_are_preserved(generator: ModuleType, register: int) -> None:
    width = generator.TARGET.lanes
    vectors = np.zeros(width, np.float32)
    deep = deep_kernel(len(x86.COUNTERS) + 1, width)
    pack = Pack(1, 0, (Copy(1, (Move(0, 0, width, width),)),), deep.body)
    with executable(generator.emit(replace(deep, body=(pack,), workspace=width))) as address:
        call = b"\x48\xb8" + address.to_bytes(8, "little") + b"\xff\xd0"
        wrapper = (
            asm.push(register)
            + asm.move_immediate(register, 12345)
            + call
            + asm.move(asm.RAX, register)
            + asm.pop(register)
            + asm.ret()
        )
        with executable(wrapper) as outer:
            data = vectors.ctypes.data
            assert PROTOTYPE(outer)(data, data, data, 1, data) == 12345


@pytest.mark.parametrize("generator", GENERATORS)
def test_pointers_return_to_the_start_for_the_next_repetition(generator: ModuleType) -> None:
    contraction = parse_uri("loops://mm/13x37x11")
    nest = Nest((Loop("k", 4), Loop("n", 16), Loop("m", 2), Loop("k", 1), Loop("m", 1), Loop("n", 1)))
    a, b = contraction.random_inputs(0)
    c = np.zeros(contraction.shapes[2], np.float32)
    kernel = lower(contraction, nest, generator.TARGET)
    run(generator, kernel, a, b, c)
    first = c.copy()
    run(generator, kernel, a, b, c, repetitions=5)
    np.testing.assert_array_equal(c, first)


@pytest.mark.parametrize("generator", GENERATORS)
def test_more_elements_than_registers(generator: ModuleType) -> None:
    lanes, rows = generator.TARGET.lanes, 3
    columns = generator.TARGET.accumulators // rows
    widths = [lanes] * (columns - 1) + [lanes - 3]
    points = [(row, column, width) for row in range(rows) for column, width in enumerate(widths)]
    fmas = tuple(Fma(i, row, column * lanes, width) for i, (row, column, width) in enumerate(points))
    accumulators = tuple(Accumulator(i * lanes, width) for i, (_, _, width) in enumerate(points))
    kernel = Kernel((Tile(accumulators, False, (Block(fmas),)),), lanes, False, True, False, 0)
    a = np.arange(1, rows + 1, dtype=np.float32)
    b = np.arange(columns * lanes, dtype=np.float32)
    b[-3:] = 0
    c = np.zeros((rows, columns * lanes), np.float32)
    run(generator, kernel, a, b, c)
    np.testing.assert_array_equal(c, np.outer(a, b))


def test_more_tail_widths_than_mask_registers_are_refused() -> None:
    fmas = tuple(Fma(0, 0, 0, lanes) for lanes in range(1, 11))
    tile = Tile((Accumulator(0, 16),), add=False, body=(Block(fmas),))
    with pytest.raises(ValueError, match="seven"):
        avx512.emit(Kernel((tile,), 16, False, True, False, 0))


@pytest.mark.parametrize("generator", [avx2, avx512])
@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
@pytest.mark.parametrize("uri", ["loops://mm/16384x16384x16384", "loops://mm/1x268435456x1"])
def test_offsets_in_the_largest_tensors_fit(
    generator: ModuleType, random_nest: Callable[[Contraction, int], Nest], uri: str, seed: int
) -> None:
    contraction = parse_uri(uri)
    loops = random_nest(contraction, seed).loops
    # A copy of such a tensor is refused.
    nest = Nest(tuple(replace(loop, packs="") for loop in loops))
    assert generator.emit(lower(contraction, nest, generator.TARGET))
