import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import numpy as np
import pytest

from irgym.base.errors import IrgymError
from irgym.base.values import MismatchError, Range, check_fields, conform, parse_json


@pytest.mark.parametrize(
    ("limits", "inside", "outside", "text"),
    [
        (Range(0, 1), (0, 0.5, 1), (-1e-9, 1.1), "0 to 1"),
        (Range(low=1), (1, 10**18), (0.999, -1), "1 or more"),
        (Range(above=0), (1e-300, 5), (0, -1), "more than 0"),
        (Range(low=0, below=1), (0, 0.999), (1, -1), "at least 0 and less than 1"),
        (Range(above=0, high=1_000_000), (1e6,), (0, 1e6 + 1), "more than 0 and at most 1000000"),
        (Range(), (-1e300, 1e300), (), "a finite number"),
    ],
)
def test_ranges(limits, inside, outside, text):
    assert all(value in limits for value in inside)
    assert not any(value in limits for value in (*outside, math.nan, math.inf, -math.inf))
    assert str(limits) == text


@dataclass(frozen=True)
class Leaf:
    cost: Annotated[float | None, Range(low=0)]
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Tree:
    kind: Literal["oak", "elm"]
    flag: bool
    leaves: tuple[Leaf, ...] = ()
    points: tuple[tuple[int, float], ...] = ()
    also: Mapping[str, Leaf] = field(default_factory=dict[str, Leaf])
    anything: Any = None


WHOLE = {
    "kind": "elm",
    "flag": True,
    "leaves": [{"cost": 1, "names": ["a"]}, {"cost": None}],
    "points": [[1, 2], [3, 4.5]],
    "also": {"time": {"cost": 0.5}},
    "anything": [1],
}


def test_json_becomes_what_the_types_say():
    tree = conform(Tree, json.loads(json.dumps(WHOLE)))
    assert tree == Tree(
        "elm", True, (Leaf(1.0, ("a",)), Leaf(None)), ((1, 2.0), (3, 4.5)), {"time": Leaf(0.5)}, [1]
    )
    assert isinstance(tree.leaves[0].cost, float)
    assert conform(Tree, tree) is tree


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"kind": "pine"}, "kind is 'pine', not oak or elm"),
        ({"kind": []}, "kind is [], not oak or elm"),
        ({"flag": 1}, "flag is 1, not true or false"),
        ({"leaves": {}}, "leaves is {}, not a list"),
        ({"leaves": [{}]}, "leaves[0].cost is missing"),
        ({"leaves": [{"cost": True}]}, "leaves[0].cost is True, not a finite number, 0 or more"),
        ({"leaves": [{"cost": math.nan}]}, "leaves[0].cost is nan, not a finite number, 0 or more"),
        ({"leaves": [{"cost": 10**400}]}, "..., not a finite number, 0 or more"),
        ({"leaves": [{"cost": -1}]}, "leaves[0].cost is -1, not 0 or more"),
        ({"leaves": [{"cost": 1, "names": "ab"}]}, "leaves[0].names is 'ab', not a list"),
        ({"leaves": [{"cost": 1, "names": ["\ud800"]}]}, "leaves[0].names[0] is '\\ud800', not text"),
        ({"points": [[1]]}, "points[0] is [1], not a list of 2"),
        ({"points": [[1.5, 2]]}, "points[0][0] is 1.5, not a whole number"),
        ({"points": [[2**63, 2]]}, "points[0][0] is 9223372036854775808, not a whole number"),
        ({"also": {"time": 3}}, "also['time'] is 3, not an object"),
        ({"colour": 3}, "colour is 3, not known"),
    ],
)
def test_a_mismatch_is_named(change, words):
    with pytest.raises(MismatchError) as caught:
        conform(Tree, WHOLE | change)
    assert str(caught.value).endswith(words)


def test_other_things_than_objects():
    for data in (None, 3, [], "x"):
        with pytest.raises(MismatchError, match=r"the whole is .*, not an object"):
            conform(Tree, data)


def test_numbers_of_numpy_are_numbers():
    check_fields(Leaf(np.float32(1.5)), "a leaf")
    assert conform(int, np.int64(3)) == 3
    with pytest.raises(IrgymError, match="cost of a leaf is nan: choose a finite number, 0 or more"):
        check_fields(Leaf(np.float64("nan")), "a leaf")


def test_texts_nested_beyond_measure_are_no_json():
    with pytest.raises(ValueError, match="deeply"):
        parse_json("[" * 100_000)
