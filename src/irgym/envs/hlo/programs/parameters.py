"""How the parameters of model families are written: words, flags and numbers, as options of URIs."""

from irgym.core.uri import Option

TRAINING = ("mode", "train")
"""What parameters need that have a meaning in training only."""


def word(name: str, *choices: str, training: bool = False) -> Option:
    """Return a parameter that is a word, its first choice by default."""
    return Option(name, choices[0], choices=choices, only=TRAINING if training else None)


def flag(name: str, default: bool, training: bool = False) -> Option:
    """Return a parameter that is true or false."""
    return Option(name, default, only=TRAINING if training else None)


def size(name: str, tiny: int, full: int, low: int = 1, high: int = 1 << 17) -> Option:
    """Return a number with its defaults in tiny shapes and in full ones, which are the published ones."""
    return Option(name, tiny, high, low, presets=(("full", full),))


def depth(name: str, tiny: int, full: int, high: int = 64) -> Option:
    """Return a number that the graph grows with, bounded so that nobody waits an hour by mistake."""
    return size(name, tiny, full, high=high)
