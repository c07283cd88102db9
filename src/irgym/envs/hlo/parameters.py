"""What a family of model programs is: its name, its parameters and how they must fit together."""

from dataclasses import dataclass

Value = int | bool | str
"""What a parameter may hold."""


@dataclass(frozen=True)
class Parameter:
    """A parameter of a family.

    Attributes:
        name: Its name in URIs.
        tiny: Default in tiny shapes.
        full: Default in full shapes: the published size.
        choices: The words allowed, if it is a word.
        low: Least value, if it is a number.
        high: Greatest value, if it is a number.
        training: Whether it means something in training only.
    """

    name: str
    tiny: Value
    full: Value
    choices: tuple[str, ...] = ()
    low: int = 1
    high: int = 1 << 17
    training: bool = False

    def default(self, shape: str) -> Value:
        """Return the default in `tiny` or `full` shapes."""
        return self.full if shape == "full" else self.tiny


@dataclass(frozen=True)
class Family:
    """A family of models.

    Attributes:
        name: Its name in URIs.
        summary: One line.
        parameters: What may be chosen, `mode` and `shape` first.
        multiples: Triples of a parameter, another and a factor: the first must be a multiple of the
            second times the factor.
        at_most: Pairs of parameters of which the first may not exceed the second.
    """

    name: str
    summary: str
    parameters: tuple[Parameter, ...]
    multiples: tuple[tuple[str, str, int], ...] = ()
    at_most: tuple[tuple[str, str], ...] = ()


def word(name: str, *choices: str, training: bool = False) -> Parameter:
    """Return a parameter that is a word, its first choice by default."""
    return Parameter(name, choices[0], choices[0], choices, training=training)


def flag(name: str, default: bool, training: bool = False) -> Parameter:
    """Return a parameter that is true or false."""
    return Parameter(name, default, default, training=training)


def size(name: str, tiny: int, full: int, low: int = 1, high: int = 1 << 17) -> Parameter:
    """Return a parameter that is a number."""
    return Parameter(name, tiny, full, low=low, high=high)


def depth(name: str, tiny: int, full: int, high: int = 64) -> Parameter:
    """Return a number that the graph grows with, bounded so that nobody waits an hour by mistake."""
    return Parameter(name, tiny, full, high=high)
