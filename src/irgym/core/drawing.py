"""Pictures of programs as plain data: boxes, and arrows between them. How they look is not said here."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Box:
    """A part of a program, such as an operator.

    Attributes:
        name: Tells it from the other boxes; pictures of two states are compared by it.
        label: A word or two, shown in the box.
        kind: What sort of part it is, one of the drawing's kinds.
        detail: More of it, in lines, shown on demand.
    """

    name: str
    label: str
    kind: str
    detail: str = ""


@dataclass(frozen=True)
class Arrow:
    """An arrow from one box to another.

    Attributes:
        source: Name of a box.
        target: Name of another box.
        label: What goes, such as a tensor's type, shown on demand.
    """

    source: str
    target: str
    label: str = ""


@dataclass(frozen=True)
class Drawing:
    """A program as boxes and arrows.

    Attributes:
        boxes: Each of another name; arrows point from earlier to later ones.
        arrows: Between boxes.
        kinds: Kinds of boxes in the order of a legend; each has a different colour, up to ten.
        parts: What boxes are, in the plural, such as `operators`.

    Raises:
        ValueError: It is not as said here.
    """

    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]
    kinds: tuple[str, ...]
    parts: str

    def __post_init__(self) -> None:
        place = {box.name: number for number, box in enumerate(self.boxes)}
        if len(place) < len(self.boxes):
            raise ValueError("two boxes have the same name")
        unknown = [box.kind for box in self.boxes if box.kind not in self.kinds]
        if unknown:
            raise ValueError(f"there is no kind {unknown[0]!r}")
        for arrow in self.arrows:
            if not place.get(arrow.source, len(place)) < place.get(arrow.target, -1):
                raise ValueError(f"the arrow from {arrow.source!r} does not point to a later box")
