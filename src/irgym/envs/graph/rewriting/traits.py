"""Features of rules, by which a policy can judge an unseen rule from similar ones."""

import ast
import math
from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from irgym.envs.graph.rewriting.language import operator_named
from irgym.envs.graph.rewriting.rule import Rule

Column: TypeAlias = tuple[str, str]
"""A feature: how it reads rules (`word`, `first`, `before`, `after`), and the word or operator."""


def traits_of(rules: Sequence[Rule]) -> NDArray[np.float32]:
    """Return the features of rules, shape [R, T]; see `columns_of`."""
    columns = columns_of(rules)
    return np.array([_row(rule, columns) for rule in rules], dtype=np.float32)


def columns_of(rules: Sequence[Rule]) -> tuple[Column, ...]:
    """Return what the features of rules mean, in order.

    Features are the words that the rule's name shares with other names, flags for its first word, and
    logarithmic counts of each operator (or class of operators) in pattern and replacement. Words that occur
    in one name only are included where nothing else distinguishes two rules.
    """
    words = Counter(word for rule in rules for word in set(_words(rule)))
    shared = sorted(word for word, count in words.items() if count > 1)
    starts = sorted(word for word, count in Counter(_words(rule)[0] for rule in rules).items() if count > 1)
    texts = [text for rule in rules for text in (rule.before, rule.after)]
    operators = sorted({name for text in texts for name in _operators(text)})
    columns: list[Column] = [("word", word) for word in shared]
    columns += [("first", word) for word in starts]
    columns += [(side, name) for side in ("before", "after") for name in operators]
    rows = [_row(rule, columns) for rule in rules]
    alike = Counter(rows)
    unique = sorted(
        word
        for rule, row in zip(rules, rows, strict=True)
        for word in _words(rule)
        if alike[row] > 1 and words[word] == 1
    )
    return (*columns, *(("word", word) for word in unique))


def _row(rule: Rule, columns: Sequence[Column]) -> tuple[float, ...]:
    words = Counter(_words(rule))
    counts = {"before": _operators(rule.before), "after": _operators(rule.after)}
    found = {
        **{("word", word): float(count) for word, count in words.items()},
        ("first", _words(rule)[0]): 1.0,
        **{(side, name): math.log2(1 + count) for side in counts for name, count in counts[side].items()},
    }
    return tuple([found.get(column, 0.0) for column in columns])


def _words(rule: Rule) -> list[str]:
    return rule.name.split("-")


@cache
def _operators(text: str) -> Counter[str]:
    """Return the number of calls of each operator in a pattern or a replacement."""
    calls = (call.func for call in ast.walk(ast.parse(text)) if isinstance(call, ast.Call))
    names = (name.id for name in calls if isinstance(name, ast.Name))
    return Counter(operator_named(name) for name in names if name[0].isupper())
