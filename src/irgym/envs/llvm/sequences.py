"""A short list of sequences of passes that pay on many programs: a strong, simple baseline.

Tried in order, such a list covers most of what a search finds on one program: Purini and Jain, "Finding Good
Optimization Sequences Covering Program Space", ACM TACO 2013.
"""

import json
import math
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from irgym.base.errors import IrgymError
from irgym.core.actions import Action
from irgym.core.schedule import Schedule
from irgym.envs.llvm.actions import SPACE
from irgym.envs.llvm.compiling.sections import text_bytes
from irgym.envs.llvm.state import LlvmState
from irgym.measure.passes.store import Path as PassPath

FILE = Path(__file__).with_name("sequences.json")
"""The list, written by `python benchmarks/llvm_sequences.py`."""


@cache
def sequences() -> tuple[Schedule, ...]:
    """Return the list, the sequence that pays most first."""
    texts: list[str] = json.loads(FILE.read_text())
    return tuple(Schedule.parse(text, SPACE) for text in texts)


def prefixes(task: Any, tried: Sequence[Schedule]) -> list[LlvmState]:
    """Return the state of the fewest instructions on the way of each of some sequences.

    Passes that do not apply are skipped.

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


def applying(task: Any, tried: Schedule) -> list[Action]:
    """Return the actions of a sequence that apply, one after the other, and do not fail."""
    state, actions = task.initial(), list[Action]()
    for action in tried.actions:
        if task.accepts(state, action):
            after = task.step(state, action)
            if not after.failure:
                state = after
                actions.append(action)
    return actions


def smallest(task: Any, states: Sequence[LlvmState]) -> LlvmState:
    """Return the state of the least machine code, of several that with the fewest instructions and passes.

    Code is generated for each distinct module, which takes about as long as the passes of a sequence.
    """
    distinct = {state.node.digest: state.path for state in states}
    sizes = {digest: _text_bytes(task, path) for digest, path in distinct.items()}
    return min(states, key=lambda state: (sizes[state.node.digest], *fewest(state)))


def fewest(state: LlvmState) -> tuple[int, int]:
    """Return the numbers of instructions and of passes, by which the sequences of the list are compared."""
    return state.node.total, len(state.path)


def _text_bytes(task: Any, path: PassPath) -> float:
    """Return the bytes of machine code; infinite where LLVM generates none, as measuring will say."""
    try:
        return text_bytes(task.modules.ask("code", path))
    except IrgymError:
        return math.inf
