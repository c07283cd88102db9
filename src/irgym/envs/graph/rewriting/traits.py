"""What rules have in common, as numbers: a policy judges a rule that it never saw by those that are alike."""

import ast
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from irgym.envs.graph.rewriting.language import operator_named
from irgym.envs.graph.rewriting.rule import Rule


def traits_of(rules: Sequence[Rule]) -> NDArray[np.float32]:
    """Return what rules look for and make, shape [R, T].

    A row has the words of a rule's name that others share, its first word once more, and how many of each
    operator, or class of operators, its pattern has and its result, by logarithm. A word that no other rule
    has counts where nothing else tells rules apart.
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
    own = sorted(
        word
        for rule, row in zip(rules, rows, strict=True)
        for word in _words(rule)
        if alike[row] > 1 and words[word] == 1
    )
    told = [[float(word in _words(rule)) for word in own] for rule in rules]
    return np.array([(*row, *more) for row, more in zip(rows, told, strict=True)], dtype=np.float32)


def _words(rule: Rule) -> list[str]:
    return rule.name.split("-")


def _texts(rule: Rule) -> tuple[str, str]:
    return rule.before, rule.after


def _operators(text: str) -> Counter[str]:
    """Return how often each operator is written in a pattern or a result."""
    calls = (one.func for one in ast.walk(ast.parse(text)) if isinstance(one, ast.Call))
    names = (one.id for one in calls if isinstance(one, ast.Name))
    return Counter(operator_named(name) for name in names if name[0].isupper())
