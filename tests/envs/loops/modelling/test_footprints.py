import math
from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from irgym.core.target import Cache
from irgym.envs.loops.modelling.footprints import footprint

L1 = Cache(1, 32 << 10, 64, 8)


def touched(strides: dict[str, int], extents: dict[str, int], size: int) -> set[int]:
    """The lines or pages of all float32 elements, one by one."""
    ranges = [range(extents[dim]) for dim in strides]
    places = (
        sum(at * stride for at, stride in zip(index, strides.values(), strict=True))
        for index in product(*ranges)
    )
    return {4 * place // size for place in places}


@settings(max_examples=200, deadline=None)
@given(
    run=st.integers(1, 40),
    rows=st.integers(1, 20),
    pitch=st.integers(3, 80),
    size=st.sampled_from((64, 4096)),
)
def test_rows_whose_pitch_is_a_multiple_of_a_line_touch_as_many_lines_as_counted(
    run: int, rows: int, pitch: int, size: int
):
    strides, extents = {"m": 16 * pitch, "n": 1}, {"m": rows, "n": run}
    counted = footprint(strides, extents, 4).units(size)
    exactly = len(touched(strides, extents, size))
    if size == 64:
        assert counted == exactly
    else:  # Nothing says where in a page a row begins.
        assert exactly <= 2 * counted + 1 and counted <= 2 * exactly + 1


@settings(max_examples=200, deadline=None)
@given(
    first=st.integers(1, 100),
    second=st.integers(1, 100),
    extents=st.tuples(st.integers(1, 12), st.integers(1, 12)),
)
def test_any_footprint_has_at_least_half_of_the_lines_touched(
    first: int, second: int, extents: tuple[int, int]
):
    strides = {"m": first, "n": second}
    sizes = dict(zip(strides, extents, strict=True))
    assert 2 * footprint(strides, sizes, 4).units(64) >= len(touched(strides, sizes, 64))


def test_an_image_and_a_filter_that_share_an_axis_overlap():
    # 14 outputs of a filter of 3 read 16 rows.
    part = footprint({"y": 1024, "p": 1024, "c": 1}, {"y": 14, "p": 3, "c": 16}, 4)
    assert part.runs == 16 and part.units(64) == 16


def test_rows_of_a_power_of_two_meet_in_few_sets():
    crowded = footprint({"k": 1024, "n": 1}, {"k": 64, "n": 16}, 4)
    apart = footprint({"k": 1040, "n": 1}, {"k": 64, "n": 16}, 4)
    assert crowded.held(L1) == 8 / 64
    assert apart.held(L1) == 1.0
    # Nothing is known of the sets of a cache that does not tell.
    assert crowded.held(Cache(1, 32 << 10, 64)) == 1.0


def test_a_tensor_that_lies_in_one_piece_fills_all_sets():
    part = footprint({"m": 128, "n": 1}, {"m": 64, "n": 128}, 4)
    assert part.runs == 1 and part.units(64) == math.prod((64, 128)) * 4 // 64
    assert part.held(L1) == 1.0
