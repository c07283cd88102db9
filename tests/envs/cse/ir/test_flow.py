"""Control flow against its definitions, on random graphs."""

from hypothesis import given
from hypothesis import strategies as st

from irgym.envs.cse.ir.flow import Flow
from irgym.envs.cse.ir.frequencies import frequencies, shares

GRAPHS = st.integers(1, 9).flatmap(
    lambda size: st.lists(
        st.lists(st.integers(0, size - 1), max_size=3, unique=True), min_size=size, max_size=size
    )
)


def reached(edges: list[list[int]], start: int, without: int | None = None) -> set[int]:
    """Return the blocks reachable from a block, itself included."""
    found: set[int] = set()
    waiting = [start]
    while waiting:
        current = waiting.pop()
        if current not in found and current != without:
            found.add(current)
            waiting += edges[current]
    return found


def beyond(edges: list[list[int]], block: int, without: int) -> set[int]:
    """Return the blocks reachable from a block's successors without entering `without`."""
    return set[int]().union(*(reached(edges, successor, without) for successor in edges[block]))


@given(GRAPHS)
def test_a_block_dominates_what_cannot_be_reached_without_it(edges: list[list[int]]) -> None:
    flow = Flow(edges)
    there = reached(edges, 0)
    assert set(flow.order) == there
    for first in there:
        without = reached(edges, 0, first)
        for second in there:
            assert flow.dominates(first, second) == (second not in without)


@given(GRAPHS)
def test_the_blocks_between_two_blocks_are_those_on_paths(edges: list[list[int]]) -> None:
    flow = Flow(edges)
    for first in flow.order:
        after = beyond(edges, first, first)
        for second in flow.order:
            ends = [
                middle
                for middle in after
                if any(second in reached(edges, later, first) for later in edges[middle])
            ]
            assert flow.between(first, second) >= set(ends) - {second}
            assert flow.between(first, second) <= after


@given(GRAPHS)
def test_flow_into_a_block_equals_flow_out_of_it(edges: list[list[int]]) -> None:
    flow = Flow(edges)
    cold = [not following for following in edges]
    often = frequencies(flow, cold)
    endless = {
        block for block in flow.order if not any(not edges[ending] for ending in reached(edges, block))
    }
    for block in flow.order:
        given_shares = shares(flow, cold, block)
        assert not edges[block] or abs(sum(given_shares) - 1.0) < 1e-12
        if block in endless or any(
            flow.dominates(block, predecessor) for predecessor in flow.predecessors[block]
        ):
            continue
        into = sum(
            often[predecessor] * share
            for predecessor in flow.predecessors[block]
            for following, share in zip(edges[predecessor], shares(flow, cold, predecessor), strict=True)
            if following == block
        )
        assert abs(often[block] - into - (block == 0)) < 1e-3 * max(1.0, often[block])


def test_a_loop_runs_eight_times() -> None:
    flow = Flow([[1], [1, 2], []])
    often = frequencies(flow, [False] * 3)
    assert abs(often[0] - 1) < 1e-9
    assert abs(often[1] - 8) < 1e-9
    assert abs(often[2] - 1) < 1e-9


def test_a_loop_in_a_loop_runs_64_times() -> None:
    flow = Flow([[1], [2], [2, 3], [1, 4], []])
    often = frequencies(flow, [False] * 5)
    assert abs(often[2] - 64) < 1e-6
    assert flow.depths == {0: 0, 1: 1, 2: 2, 3: 1, 4: 0}
    assert flow.loops == {1: frozenset({1, 2, 3}), 2: frozenset({2})}
