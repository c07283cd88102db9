"""The actions: each rule is a kind, and its candidates are the places where it applies."""

from irgym.core.actions import ActionSpace
from irgym.core.kinds import ActionKind
from irgym.envs.graph.rules.catalogue import RULES
from irgym.envs.graph.running.session_options import ALL, LEVELS, OFF

CAPACITY = 512
"""Number of candidates in flat views of the actions."""

STOP = 0
"""The kind that ends a schedule with ONNX Runtime's optimiser off."""

OTHERS = tuple(level for level in LEVELS if level != OFF)
"""Levels of ONNX Runtime's optimiser other than off; each has a kind that ends a schedule with it."""

SPACE = ActionSpace(
    (
        ActionKind("stop", ends="episode"),
        *(ActionKind(rule.name, candidates=True) for rule in RULES),
        *(ActionKind(f"stop-{level}", ends="episode") for level in OTHERS),
    ),
    capacity=CAPACITY,
)
"""`stop`, the rules in the order of `RULES`, and the other endings."""

ENDINGS = {STOP: OFF} | {len(RULES) + place: level for place, level in enumerate(OTHERS, start=1)}
"""The level of ONNX Runtime's optimiser, by the kind that ends a schedule with it."""

STOP_ALL = next(kind for kind, level in ENDINGS.items() if level == ALL)
"""The kind that ends a schedule with all of ONNX Runtime's optimiser."""
