"""Rules of element-wise operators, whose two operands may stand either way round."""

from collections.abc import Callable

from irgym.envs.graph.rewriting.operands import Rng
from irgym.envs.graph.rewriting.rule import Rule, Sample


def sided(
    name: str, before: str, where: str, after: str, sampled: Callable[[Rng], Sample], source: str
) -> tuple[Rule, Rule]:
    """Return two rules of an element-wise operator: `L | R` are its operands as they stand, and exchanged."""
    return (
        Rule(name, before.replace(" | ", ", "), after.replace(" | ", ", "), sampled, where, source=source),
        Rule(f"{name}-left", _turned(before), _turned(after), sampled, where, source=source),
    )


def _turned(text: str) -> str:
    """Return a text with the operands on both sides of ` | ` exchanged."""
    left, right = text.split(" | ")
    start = len(left) - _length(left[::-1], ")(")
    end = _length(right, "()")
    return f"{left[:start]}{right[:end]}, {left[start:]}{right[end:]}"


def _length(text: str, brackets: str) -> int:
    """Return the length of the operand that a text begins with."""
    depth = 0
    for place, letter in enumerate(text):
        if depth == 0 and (letter == brackets[1] or text[place : place + 2] in (", ", " ,")):
            return place
        depth += (letter == brackets[0]) - (letter == brackets[1])
    return len(text)
