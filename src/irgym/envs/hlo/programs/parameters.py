"""Options of model families in URIs: words, flags and numbers."""

from irgym.core.uri import Option

TRAINING = ("mode", "train")
"""The option, and its value, on which options for training depend."""


def word(name: str, *choices: str, training: bool = False) -> Option:
    """Return an option that is one of some words, by default the first."""
    return Option(name, choices[0], choices=choices, only=TRAINING if training else None)


def flag(name: str, default: bool, training: bool = False) -> Option:
    """Return an option that is true or false."""
    return Option(name, default, only=TRAINING if training else None)


def size(name: str, tiny: int, full: int, low: int = 1, high: int = 1 << 17) -> Option:
    """Return an option that is a number, with its defaults in tiny and in full (the published) shapes."""
    return Option(name, tiny, high, low, presets=(("full", full),))


def depth(name: str, tiny: int, full: int, high: int = 64) -> Option:
    """Return an option that is a number on which the size of the graph depends; it has a low upper bound."""
    return size(name, tiny, full, high=high)
