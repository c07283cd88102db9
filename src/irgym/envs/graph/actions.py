"""The actions: each rule is a kind, and its candidates are the places where it applies."""

from irgym.core.actions import ActionSpace
from irgym.core.kinds import ActionKind
from irgym.envs.graph.rules.catalogue import RULES
from irgym.envs.graph.running.session_options import LEVELS, OFF

CAPACITY = 512
"""Candidates that flat views of the actions have places for."""

STOP = 0
"""The kind that ends a schedule: the model runs as it is, with ONNX Runtime's own optimiser off."""

OTHERS = tuple(level for level in LEVELS if level != OFF)
"""The other levels, each of which a kind ends a schedule with: our rewrites, then those of ONNX Runtime."""

SPACE = ActionSpace(
    (
        ActionKind("stop", ends="episode"),
        *(ActionKind(rule.name, candidates=True) for rule in RULES),
        *(ActionKind(f"stop-{level}", ends="episode") for level in OTHERS),
    ),
    capacity=CAPACITY,
)
"""`stop`, then the rules in the order of `RULES`, then the other endings."""

ENDINGS = {STOP: OFF} | {len(RULES) + place: level for place, level in enumerate(OTHERS, start=1)}
"""The level that each kind ends a schedule with."""
