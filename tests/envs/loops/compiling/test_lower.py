from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from irgym.core.target import X86_64_V3, X86_64_V4, Target
from irgym.envs.loops.compiling.kernel import Block, Copy, Kernel, Node, Pack, Prefetch, Repeat, Tile
from irgym.envs.loops.compiling.lower import CodeTooLarge, lower
from irgym.envs.loops.compiling.packing import LINE
from irgym.envs.loops.compiling.plan import plan
from irgym.envs.loops.compiling.streaming import distances
from irgym.envs.loops.nest import Loop, Nest, initial_nest, parse_nest
from irgym.envs.loops.programs.contraction import Contraction, Tensor, matmul, parse_uri

WIDE = X86_64_V4
NARROW = X86_64_V3


class Interpreter:
    """Interpreter of kernels in float64, as documented; numpy checks the bounds."""

    def __init__(self, kernel: Kernel, a: Tensor, b: Tensor, size: int) -> None:
        self.kernel = kernel
        self.inputs = [a.ravel().astype(np.float64), b.ravel().astype(np.float64)]
        self.workspace = np.full(kernel.workspace, np.nan)
        self.c = np.full(size, np.nan)
        self.c[: kernel.clear] = 0
        self.registers: list[np.ndarray] = []
        self.lines: list[tuple[set[int], set[int]]] = []  # of each copy: copied, and prefetched meanwhile
        self.copied: int | None = None
        self.trace: list[tuple[str, int, int]] = []  # of inputs: what happens, the input, the line

    def run(self, nodes: Sequence[Node], at: tuple[int, int, int]) -> None:
        for node in nodes:
            match node:
                case Repeat(count, strides, body):
                    assert count >= 2
                    for turn in range(count):
                        self.run(body, tuple(p + turn * s for p, s in zip(at, strides, strict=True)))
                case Tile():
                    self.tile(node, at)
                case Block(fmas):
                    for index, a, b, lanes in fmas:
                        self.trace += [("read", 0, (at[0] + a) // LINE), ("read", 1, (at[1] + b) // LINE)]
                        left = self.read(self.inputs[0], at[0] + a, lanes, self.kernel.a_vector)
                        right = self.read(self.inputs[1], at[1] + b, lanes, self.kernel.b_vector)
                        self.registers[index][:lanes] += left * right
                case Pack(operand, place, copy, body):
                    self.lines.append((set(), set()))
                    self.copied = operand
                    self.run(copy, (*at[:2], place))
                    self.copied = None
                    original, self.inputs[operand] = self.inputs[operand], self.workspace
                    self.run(body, tuple(place if tensor == operand else at[tensor] for tensor in range(3)))
                    self.inputs[operand] = original
                case Prefetch(operand, offsets):
                    ahead = [(at[operand] + offset) // LINE for offset in offsets]
                    if operand == self.copied:
                        self.lines[-1][1].update(ahead)
                    self.trace += [("prefetch", operand, line) for line in ahead]
                case Copy(operand, moves):
                    self.lines[-1][0].update((at[operand] + move.source) // LINE for move in moves)
                    for source, destination, lanes, width in moves:
                        values = self.read(self.inputs[operand], at[operand] + source, lanes, True)
                        padded = np.pad(values, (0, width - lanes))
                        self.workspace[at[2] + destination : at[2] + destination + width] = padded

    def read(self, tensor: np.ndarray, at: int, lanes: int, vector: bool) -> np.ndarray:
        assert at >= 0
        values = tensor[at : at + (lanes if vector else 1)]
        assert len(values) == (lanes if vector else 1)
        return values

    def tile(self, node: Tile, at: tuple[int, int, int]) -> None:
        self.registers = [np.zeros(self.kernel.lanes) for _ in node.accumulators]
        self.run(node.body, at)
        for register, (offset, lanes) in zip(self.registers, node.accumulators, strict=True):
            place = at[2] + offset
            assert 0 <= place <= len(self.c) - lanes
            value = register.sum() if self.kernel.sum_lanes else register[:lanes]
            before = self.c[place : place + lanes] if node.add else 0
            self.c[place : place + lanes] = before + value


@settings(max_examples=80, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), target=st.sampled_from([WIDE, NARROW]))
def test_any_kernel_computes_the_contraction(
    random_contraction: Callable[[int], Contraction],
    random_nest: Callable[[Contraction, int], Nest],
    seed: int,
    target: Target,
) -> None:
    contraction = random_contraction(seed)
    if contraction.flops > 20_000:
        contraction = parse_uri("loops://mm/5x19x7")
    kernel = lower(contraction, random_nest(contraction, seed), target)
    a, b = contraction.random_inputs(1)
    interpreter = Interpreter(kernel, a, b, int(np.prod(contraction.shapes[2])))
    interpreter.run(kernel.body, (0, 0, 0))
    np.testing.assert_allclose(interpreter.c.reshape(contraction.shapes[2]), contraction.reference(a, b))


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), target=st.sampled_from([WIDE, NARROW]))
def test_groups_use_each_accumulator_once(
    random_contraction: Callable[[int], Contraction],
    random_nest: Callable[[Contraction, int], Nest],
    seed: int,
    target: Target,
) -> None:
    contraction = random_contraction(seed)

    def check(nodes: Sequence[Node], accumulators: int) -> None:
        for node in nodes:
            match node:
                case Block(fmas):
                    for start in range(0, len(fmas), accumulators):
                        group = fmas[start : start + accumulators]
                        assert sorted(fma.accumulator for fma in group) == list(range(accumulators))
                case Tile():
                    check(node.body, len(node.accumulators))
                case Repeat() | Pack():
                    check(node.body, accumulators)
                case Copy():
                    pass

    check(lower(contraction, random_nest(contraction, seed), target).body, 0)


@pytest.mark.parametrize("target", [WIDE, NARROW])
def test_while_a_panel_is_copied_the_next_one_is_prefetched(
    target: Target, prefetching: Callable[[bool], AbstractContextManager[object]]
) -> None:
    contraction = matmul(6, 64, 64)
    with prefetching(True):
        kernel = lower(contraction, parse_nest("k/32 n/32 pack(b) m k n"), target)
    interpreter = Interpreter(kernel, *contraction.random_inputs(1), 6 * 64)
    interpreter.run(kernel.body, (0, 0, 0))
    first, second, third, fourth = interpreter.lines
    assert len(first[0]) == len(second[0]) == 32 * 2
    assert (first[1], third[1]) == (second[0], fourth[0])


def test_only_parts_of_large_inputs_are_prefetched() -> None:
    def prefetches(node: Node) -> bool:
        match node:
            case Prefetch():
                return True
            case Pack():
                return any(map(prefetches, (*node.copy, *node.body)))
            case Repeat():
                return any(map(prefetches, node.body))
            case _:
                return False

    panels, whole = parse_nest("n/32 pack(b) m k n"), parse_nest("pack(b) n/32 m k n")
    wanted = [(1024, panels, True), (256, panels, False), (1024, whole, False)]
    for size, nest, expected in wanted:
        assert any(map(prefetches, lower(matmul(6, size, size), nest, WIDE).body)) == expected


@pytest.mark.parametrize("target", [WIDE, NARROW])
def test_tiles_prefetch_each_line_that_they_write(
    target: Target, prefetching: Callable[[bool], AbstractContextManager[object]]
) -> None:
    def tiles(nodes: Sequence[Node]) -> Iterator[tuple[Tile, list[int]]]:
        for node in nodes:
            if isinstance(node, Tile):
                of_c = [each for each in node.body if isinstance(each, Prefetch) and each.operand == 2]
                yield node, [offset // LINE for each in of_c for offset in each.offsets]
            elif isinstance(node, Repeat | Pack):
                yield from tiles(node.body)

    contraction = matmul(65, 96, 64)
    nest = parse_nest("k/32 m/4 n/16 k m n")
    with prefetching(True):
        found = list(tiles(lower(contraction, nest, target).body))
    assert len(found) == 2  # the last row has a tile of one row
    for tile, prefetched in found:
        written = {
            element // LINE for part in tile.accumulators for element in range(part.c, part.c + part.lanes)
        }
        assert sorted(written) == prefetched
    assert not any(prefetched for _, prefetched in tiles(lower(contraction, nest, target).body))
    large = lower(matmul(256, 256, 64), nest, target)
    assert all(prefetched for _, prefetched in tiles(large.body))
    short = lower(matmul(256, 256, 8), parse_nest("m/4 n/16 k m n"), target)
    assert not any(prefetched for _, prefetched in tiles(short.body))


@pytest.mark.parametrize("target", [WIDE, NARROW])
def test_of_an_input_that_is_read_once_each_line_is_prefetched_before(
    target: Target, prefetching: Callable[[bool], AbstractContextManager[object]]
) -> None:
    contraction = matmul(1, 64, 64)
    with prefetching(True):
        kernel = lower(contraction, parse_nest("k/8 n/32 k n"), target)
    interpreter = Interpreter(kernel, *contraction.random_inputs(1), 64)
    interpreter.run(kernel.body, (0, 0, 0))
    known: set[int] = set()
    missed: set[int] = set()
    for event, which, line in interpreter.trace:
        if which == 1:
            if event == "read" and line not in known:
                missed.add(line)
            known.add(line)
    assert len(missed) == 8 * 64 // LINE, "more than the first eight rows"


@pytest.mark.parametrize(
    ("m", "size", "schedule", "expected"),
    [
        (1, 4096, "k/8 n/32 k n", True),
        (2, 4096, "k/8 n/32 k m n", True),
        (1, 512, "k/8 n/32 k n", False),
        (8, 4096, "k/8 n/32 k m n", False),
    ],
)
def test_only_large_inputs_that_are_hardly_used_are_prefetched(
    m: int, size: int, schedule: str, expected: bool
) -> None:
    kernel = lower(matmul(m, size, size), parse_nest(schedule), WIDE)
    assert ("Prefetch(operand=1" in repr(kernel)) == expected


@pytest.mark.parametrize(
    ("uri", "schedule", "expected"),
    [
        ("loops://mm/1x4096x4096", "k/8 n/32 k n", 8 * 4096),  # the rows that come next
        ("loops://mm/1x4096x4096", "n/32 k n", 128 * 4096),  # 16 KiB, of 128 bytes in each row
        ("loops://mm/1x4194304x8", "n/64 k n", 8 * 64),  # 16 KiB, along the rows
        ("loops://mm/64x4096x4096", "n/32 m k n", 0),  # read again from a cache, by each row
    ],
)
def test_how_far_ahead_is_prefetched(uri: str, schedule: str, expected: int) -> None:
    contraction = parse_uri(uri)
    tiles = plan(contraction, parse_nest(schedule), NARROW)
    assert distances(contraction, tiles, NARROW) == (0, expected)


def test_equal_nests_give_equal_kernels() -> None:
    contraction = matmul(33, 47, 65)
    assert lower(contraction, initial_nest(contraction), WIDE) == lower(
        contraction, initial_nest(contraction), WIDE
    )


def test_the_input_with_fewer_elements_stays_in_registers() -> None:
    nest = Nest((Loop("k", 1), Loop("m", 1), Loop("n", 1)))
    tall = lower(matmul(8, 32, 1), nest, WIDE)
    wide = lower(matmul(2, 128, 1), nest, WIDE)
    assert [fma.a for fma in block(tall)] == [m for m in range(8) for _ in range(2)]
    assert [fma.b for fma in block(wide)] == [16 * n for n in range(8) for _ in range(2)]


def block(kernel: Kernel) -> Sequence[tuple[int, int, int, int]]:
    (tile,) = kernel.body
    assert isinstance(tile, Tile)
    (inner,) = tile.body
    assert isinstance(inner, Block)
    return inner.fmas


def test_code_that_would_be_too_long_is_refused() -> None:
    sizes = dict.fromkeys("abcdef", 31)
    contraction = Contraction("loops://test", tuple(sizes.items()), *parse_uri_axes())
    steps = (16, 8, 4, 2, 1)
    nest = Nest(tuple(Loop(dim, step) for step in steps for dim in sizes))
    with pytest.raises(CodeTooLarge, match="multiply-adds"):
        lower(contraction, nest, WIDE)


def parse_uri_axes():
    small = parse_uri("loops://einsum/abcde,ef->abcdf?" + "&".join(f"{dim}=2" for dim in "abcdef"))
    return small.a, small.b, small.c
