"""Pictures of the trees that searches walked."""

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from passes import URIS, PassBench, PassTask

from irgym.base.errors import IrgymError
from irgym.reporting.trees import as_dot, as_svg, pruned, write_tree
from irgym.search.budget import Budget
from irgym.search.request import SearchRequest
from irgym.search.run import run_search
from irgym.search.strategies.evolutionary import Evolutionary
from irgym.search.strategies.greedy import Greedy
from irgym.search.tree import SearchTree

TASK = PassTask(URIS[2])


def tree_of(strategy, evaluations: int) -> SearchTree:
    tree = SearchTree()
    run_search(strategy, TASK, PassBench(), SearchRequest(Budget(evaluations), 0, evaluated=tree.add))
    return tree


def boxes(top):
    return [top, *(box for following in top.boxes for box in boxes(following))]


@pytest.mark.parametrize("strategy", [Greedy(), Evolutionary()])
def test_a_small_tree_is_drawn_whole(strategy):
    tree = tree_of(strategy, 30)
    top = pruned(tree, TASK)
    assert sum(box.branch.cost is not None for box in boxes(top)) == tree.tried
    assert not any(box.hidden for box in boxes(top))
    for text in (as_svg(tree, TASK, "a search"), as_dot(tree, TASK, "a search")):
        assert f"a search: all {tree.tried} schedules that it tried" in text and "more behind" not in text


def test_a_large_tree_is_pruned_to_the_cheapest_and_says_so():
    tree = tree_of(Evolutionary(), 400)
    top = pruned(tree, TASK, most=10)
    shown = [box.branch.cost for box in boxes(top) if box.branch.cost is not None]
    assert tree.least in shown and tree.root.cost in shown
    assert len(shown) + sum(box.hidden for box in boxes(top)) == tree.tried
    way = [action for box in boxes(top) if box.best for action in box.actions]
    assert way == [TASK.space.text(action) for action in tree.best]
    svg = as_svg(tree, TASK, "a search")
    count = len(ElementTree.fromstring(svg).findall(".//{*}rect"))
    assert re.search(rf"of the {tree.tried} schedules", svg) and count < tree.tried / 2
    assert re.search(r'label="\d+ more"', as_dot(tree, TASK, "a search"))


def test_every_box_has_a_place_of_its_own():
    svg = ElementTree.fromstring(as_svg(tree_of(Evolutionary(), 400), TASK, "a <search>"))
    places = [(float(box.get("x", 0)), float(box.get("y", 0))) for box in svg.findall(".//{*}rect")]
    assert len(set(places)) == len(places) > 20
    rows: dict[float, list[float]] = {}
    for box in svg.findall(".//{*}rect"):
        rows.setdefault(float(box.get("y", 0)), []).append(float(box.get("x", 0)))
    assert all(
        b - a > 60 for row in rows.values() for a, b in zip(sorted(row), sorted(row)[1:], strict=False)
    )


def test_names_with_quotes_are_escaped():
    assert 'label="a \\"b\\" \\\\: all' in as_dot(tree_of(Greedy(), 5), TASK, 'a "b" \\')


def test_the_suffix_chooses_the_form(tmp_path: Path):
    tree = tree_of(Greedy(), 20)
    for suffix, begin in ((".svg", "<svg"), (".dot", "digraph"), (".json", "{")):
        write_tree(tree, TASK, tmp_path / f"tree{suffix}", "a search")
        assert (tmp_path / f"tree{suffix}").read_text().startswith(begin)
    data = json.loads((tmp_path / "tree.json").read_text())
    assert data["tried"] == tree.tried and data["objective"]["name"] == TASK.objective.name
    with pytest.raises(IrgymError, match="end the name in one of"):
        write_tree(tree, TASK, tmp_path / "tree.png", "a search")
