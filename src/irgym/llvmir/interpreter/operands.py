"""Parsing of operands: type, attributes, value."""

from dataclasses import dataclass
from functools import cached_property

from irgym.llvmir.ir.syntax import spaced
from irgym.llvmir.ir.types import first_type

_ATTRIBUTES = frozenset(
    (
        *("noundef", "nonnull", "zeroext", "signext", "noext", "inreg", "nest", "returned", "noalias"),
        *("nocapture", "nofree", "readonly", "readnone", "writeonly", "writable", "dead_on_unwind"),
        *("dead_on_return", "immarg", "swiftself", "swifterror", "swiftasync", "allocalign", "allocptr"),
        *("align", "dereferenceable", "dereferenceable_or_null", "captures", "byval", "byref", "sret"),
        *("elementtype", "range", "initializes", "nofpclass", "inalloca", "preallocated", "alignstack"),
    )
)


@dataclass(frozen=True)
class Operand:
    """An operand.

    Attributes:
        kind: The type.
        attributes: Parameter attributes.
        value: A local value, or a constant.
    """

    kind: str
    attributes: tuple[str, ...]
    value: str

    @staticmethod
    def read(text: str) -> "Operand":
        """Parse an operand such as `ptr noundef nonnull align 8 %p`."""
        kind = first_type(text)
        words = spaced(text[len(kind) :])
        if words and words[0].startswith("addrspace("):
            kind = f"{kind} {words.pop(0)}"
        attributes: list[str] = []
        while words and (words[0].partition("(")[0] in _ATTRIBUTES or words[0].startswith('"')):
            word = words.pop(0)
            if word == "align":
                word = f"align {words.pop(0)}"
            attributes.append(word)
        return Operand(kind, tuple(attributes), " ".join(words))

    @cached_property
    def by_value(self) -> str | None:
        """The type of what the argument points to, if the callee receives a copy of that."""
        return self.named("byval")

    @cached_property
    def captured(self) -> bool:
        """Whether the callee may keep the pointer."""
        return self.named("captures") != "none" and "nocapture" not in self.attributes

    @cached_property
    def readable(self) -> bool:
        """Whether the callee may read memory through the pointer."""
        return not {"readnone", "writeonly"} & {*self.attributes}

    @cached_property
    def writable(self) -> bool:
        """Whether the callee may write memory through the pointer."""
        return not {"readonly", "readnone"} & {*self.attributes}

    def named(self, attribute: str) -> str | None:
        """Return the argument of an attribute in brackets; empty without one, None without the attribute."""
        for text in self.attributes:
            name, _, inside = text.partition("(")
            if name == attribute:
                return inside.removesuffix(")")
        return None


def closing(text: str, opening: int) -> int:
    """Return the place of the bracket that closes the bracket at `opening`.

    Raises:
        ValueError: Nothing closes it.
    """
    depth = 0
    quoted = False
    for place in range(opening, len(text)):
        letter = text[place]
        if letter == '"':
            quoted = not quoted
        elif not quoted:
            depth += (letter in "([{") - (letter in ")]}")
            if not depth:
                return place
    raise ValueError(f"LLVM printed a bracket that nothing closes: {text}")
