"""A short list of sequences of passes that pay on many programs: a strong, simple baseline.

Tried in order, such a list covers most of what a search finds on one program: Purini and Jain, "Finding Good
Optimization Sequences Covering Program Space", ACM TACO 2013.
"""

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from irgym.core.schedule import Schedule
from irgym.envs.llvm.actions import SPACE
from irgym.envs.llvm.state import LlvmState

FILE = Path(__file__).with_name("sequences.json")
"""The list, written by `python benchmarks/llvm_sequences.py`."""


@cache
def sequences() -> tuple[Schedule, ...]:
    """Return the list, the sequence that pays most first."""
    texts: list[str] = json.loads(FILE.read_text())
    return tuple(Schedule.parse(text, SPACE) for text in texts)


def prefixes(task: Any, tried: Sequence[Schedule]) -> list[LlvmState]:
    """Return the best state on the way of each of some sequences; passes that do not apply are skipped.

    Args:
        task: The task.
        tried: The sequences; they are followed in lockstep.
    """
    states: list[LlvmState] = [task.initial()] * len(tried)
    best = list(states)
    for place in range(max(map(len, tried), default=0)):
        live = [
            number
            for number, schedule in enumerate(tried)
            if place < len(schedule) and task.accepts(states[number], schedule.actions[place])
        ]
        actions = [tried[number].actions[place] for number in live]
        after = task.step_batch([states[number] for number in live], actions)
        for number, state in zip(live, after, strict=True):
            if not state.failure:
                states[number] = state
                if state.node.total < best[number].node.total:
                    best[number] = state
    return best
