"""Pictures: every box is in them, what changed is marked, and no name does harm."""

import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import pytest
from staged import Staged

from irgym.core.drawing import Arrow, Box, Drawing
from irgym.core.schedule import Schedule, replay
from irgym.reporting import pictures

HOSTILE = ["<script>alert(1)</script>", "</title></svg>", '"x" onload="y', "&amp;&", "{x} {0} %s", "a\nb"]


def drawings(ops: str = "sttss", schedule: str = "merge@x1 fuse@x0") -> tuple[Drawing, Drawing]:
    task = Staged(ops)
    after = replay(task, Schedule.parse(schedule, task.space))
    return task.drawing(task.initial()), task.drawing(after)


def texts(svg: str) -> list[str]:
    root = ElementTree.fromstring(svg)
    return [element.text or "" for element in root.iter() if element.tag.endswith("text")]


def test_every_box_and_what_changed():
    before, after = drawings()
    gone, new = pictures.changed(before, after), pictures.changed(after, before)
    assert gone == {"x0", "x1", "x2"} and new == {"x0"}
    assert sorted(texts(pictures.svg(before, gone, "gone", "before"))) == sorted(
        ["\u2212 scale", "\u2212 shift", "\u2212 shift", "scale", "scale"]
    )
    svg = pictures.svg(after, new, "new", "after")
    assert texts(svg) == ["+ both", "scale", "scale"]
    assert svg.count(" new") == 1 and svg.count("<path") == 2 and svg.count("a number") == 2
    assert pictures.counts(before, after) == [("scale", 3, 2), ("shift", 2, 0), ("both", 0, 1)]


def test_pictures_are_the_same_each_time():
    before, after = drawings("sttssttsbbst", "merge@x1 split@x8")
    assert pictures.side_by_side(before, after) == pictures.side_by_side(before, after)


@pytest.mark.parametrize("name", HOSTILE)
def test_names_are_text(name: str):
    box = Box(name, name, name, name)
    drawing = Drawing((box, Box("b", "b", name)), (Arrow(name, "b", name),), (name,), name)
    svg = pictures.svg(drawing, frozenset({name}), "new", name)
    shown = ElementTree.fromstring(svg)
    assert {element.tag for element in shown.iter()} == {"svg", "path", "title", "g", "rect", "text"}
    assert f"+ {name}" in [element.text for element in shown.iter("text")]
    assert name in [element.text for element in shown.iter("title")]
    assert {key for element in shown.iter() for key in element.attrib}.isdisjoint({"onload"})
    page = pictures.side_by_side(drawing, drawing)
    assert "<script" not in page and page.count("<svg") == page.count("</svg>") == 1, "nothing changed"


def test_a_file_of_its_own():
    root = ElementTree.fromstring(pictures.standalone(*drawings()))
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    style = root.find("{http://www.w3.org/2000/svg}style")
    assert (
        style is not None and "--paper" in (style.text or "") and "prefers-color-scheme" in (style.text or "")
    )


def test_too_many_boxes_are_not_drawn():
    before, _ = drawings()
    many = replace(before, boxes=tuple(Box(str(n), "x", "both") for n in range(pictures.MOST + 1)), arrows=())
    assert "Not drawn: 2001" in pictures.side_by_side(before, many)
    assert "<svg" not in pictures.side_by_side(before, many)


def test_five_hundred_boxes_are_a_small_file():
    boxes = tuple(
        Box(f"box_{n}", "LayerNormalization", "a", "float32 [1, 128, 768]\n" * 3) for n in range(500)
    )
    arrows = tuple(
        Arrow(f"box_{n - step}", f"box_{n}", "float32 [1, 128, 768]")
        for n in range(500)
        for step in (1, 7)
        if n >= step
    )
    drawing = Drawing(boxes, arrows, ("a",), "operators")
    assert len(pictures.side_by_side(drawing, drawing)) < 1_000_000
