"""Features of rules, by which a policy can judge an unseen rule from similar ones."""

import ast
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from irgym.envs.graph.rewriting.language import operator_named
from irgym.envs.graph.rewriting.rule import Rule


def traits_of(rules: Sequence[Rule]) -> NDArray[np.float32]:
    """Return the features of rules, shape [R, T].

    A row holds flags for the words that the rule's name shares with other names, flags for its first word,
    and logarithmic counts of each operator (or class of operators) in pattern and replacement. Words that
    occur in one name only are included where nothing else distinguishes two rules.
    """
    words = Counter(word for rule in rules for word in set(_words(rule)))
    shared = sorted(word for word, count in words.items() if count > 1)
    starts = sorted(word for word, count in Counter(_words(rule)[0] for rule in rules).items() if count > 1)
    before, after = ([_operators(text) for text in texts] for texts in zip(*map(_texts, rules), strict=True))
    operators = sorted({name for counts in (*before, *after) for name in counts})
    rows = [
        (
            *(float(_words(rule).count(word)) for word in shared),
            *(float(word == _words(rule)[0]) for word in starts),
            *(float(np.log2(1 + counts[name])) for counts in (had, made) for name in operators),
        )
        for rule, had, made in zip(rules, before, after, strict=True)
    ]
    alike = Counter(rows)
    unique = sorted(
        word
        for rule, row in zip(rules, rows, strict=True)
        for word in _words(rule)
        if alike[row] > 1 and words[word] == 1
    )
    flags = [[float(word in _words(rule)) for word in unique] for rule in rules]
    return np.array([(*row, *more) for row, more in zip(rows, flags, strict=True)], dtype=np.float32)


def _words(rule: Rule) -> list[str]:
    return rule.name.split("-")


def _texts(rule: Rule) -> tuple[str, str]:
    return rule.before, rule.after


def _operators(text: str) -> Counter[str]:
    """Return the number of calls of each operator in a pattern or a replacement."""
    calls = (call.func for call in ast.walk(ast.parse(text)) if isinstance(call, ast.Call))
    names = (name.id for name in calls if isinstance(name, ast.Name))
    return Counter(operator_named(name) for name in names if name[0].isupper())
