"""Drawings refuse what no picture can show."""

import pytest

from irgym.core.drawing import Arrow, Box, Drawing

BOXES = (Box("a", "Add", "sum"), Box("b", "Mul", "product"))
KINDS = ("sum", "product")


def test_a_valid_drawing_keeps_its_boxes():
    drawing = Drawing(BOXES, (Arrow("a", "b"), Arrow("a", "b", "again")), KINDS, "operators")
    assert drawing.boxes == BOXES


@pytest.mark.parametrize(
    ("boxes", "arrows", "kinds", "words"),
    [
        ((*BOXES, Box("a", "Sub", "sum")), (), KINDS, "same name"),
        (BOXES, (), ("sum",), "no kind 'product'"),
        (BOXES, (Arrow("b", "a"),), KINDS, "later box"),
        (BOXES, (Arrow("a", "a"),), KINDS, "later box"),
        (BOXES, (Arrow("a", "c"),), KINDS, "later box"),
        (BOXES, (Arrow("c", "b"),), KINDS, "later box"),
    ],
)
def test_inconsistent_drawings_are_refused(boxes, arrows, kinds, words):
    with pytest.raises(ValueError, match=words):
        Drawing(boxes, arrows, kinds, "operators")
