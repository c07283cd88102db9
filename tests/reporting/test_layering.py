"""Layouts of graphs at random: what every picture must keep to."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from irgym.reporting.layering import BEND, GAP, Layout, layout


@st.composite
def graphs(draw: st.DrawFn) -> tuple[dict[str, float], list[tuple[str, str, str]]]:
    count = draw(st.integers(0, 24))
    widths = {f"n{number}": draw(st.sampled_from([20.0, 55.5, 140.0])) for number in range(count)}
    ends = st.tuples(st.integers(0, max(count - 1, 0)), st.integers(0, max(count - 1, 0)))
    pairs = draw(st.lists(ends, max_size=50)) if count else []
    names = list(widths)
    label = st.sampled_from(["", "x"])
    return widths, [(names[a], names[b], draw(label)) for a, b in pairs if a < b]


def ways(found: Layout, label: str, source: str, target: str) -> bool:
    """Say whether a wire of that label goes from a box to another, through bends alone."""
    steps = {piece for wire in found.wires if wire.label == label for piece in wire.pieces}
    place = {name: number for number, name in enumerate(found.points)}
    reached, frontier = set[int](), [place[source]]
    while frontier:
        point = frontier.pop()
        for begin, end in steps:
            if begin == point and end not in reached:
                reached.add(end)
                frontier += [end] if found.points[end] is None else []
    return place[target] in reached


@settings(max_examples=150, deadline=None)
@given(graphs())
def test_every_layout(graph: tuple[dict[str, float], list[tuple[str, str, str]]]):
    widths, arrows = graph
    found = layout(widths, arrows)
    assert [name for name in found.points if name is not None] == list(widths), "every box is there once"
    for wire in found.wires:
        for source, target in wire.pieces:
            assert found.layer[target] == found.layer[source] + 1, "downward, from layer to layer"
    for source, target, label in arrows:
        assert ways(found, label, source, target)
    sizes = [BEND if name is None else widths[name] for name in found.points]
    for layer in range(found.layers):
        row = sorted((found.x[point], sizes[point]) for point, own in enumerate(found.layer) if own == layer)
        assert row, "no layer is empty"
        for (left, first), (right, second) in pairwise(row):
            assert right - left >= (first + second) / 2 + GAP - 1e-6, "nothing overlaps"
    edges = [middle - size / 2 for middle, size in zip(found.x, sizes, strict=True)]
    assert min(edges, default=0.0) == pytest.approx(0.0)
    assert all(edge + size <= found.width + 1e-6 for edge, size in zip(edges, sizes, strict=True))
    assert layout(widths, arrows) == found


def test_a_circle_is_refused():
    with pytest.raises(ValueError, match="circle"):
        layout({"a": 10.0, "b": 10.0}, [("a", "b", ""), ("b", "a", "")])


def test_a_chain_and_what_goes_past_it_are_straight():
    names = [f"n{number}" for number in range(12)]
    arrows = [*((name, other, "") for name, other in pairwise(names)), ("n0", "n11", "")]
    found = layout(dict.fromkeys(names, 60.0), arrows)
    chain = {found.x[number] for number in range(1, 11)}
    bends = {x for x, name in zip(found.x, found.points, strict=True) if name is None}
    assert len(chain) == len(bends) == 1 and found.layers == 12


def test_crossings_are_avoided():
    """Two ladders whose rungs are given in the wrong order."""
    arrows = [("a", "d", ""), ("b", "c", ""), ("d", "f", ""), ("c", "e", "")]
    found = layout(dict.fromkeys("abcdef", 40.0), arrows)
    x = dict(zip(found.points, found.x, strict=True))
    assert (x["a"] < x["b"]) == (x["d"] < x["c"]) == (x["f"] < x["e"])


def test_a_source_is_beside_its_first_user():
    names = [f"n{number}" for number in range(6)]
    found = layout(
        dict.fromkeys([*names, "late"], 40.0), [*((a, b, "") for a, b in pairwise(names)), ("late", "n5", "")]
    )
    assert found.layer[6] == 4 and None not in found.points
