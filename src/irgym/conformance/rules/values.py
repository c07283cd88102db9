"""Rules about states as values: forks, replays and batches agree, and texts parse back."""

from irgym.conformance.case import Case, snapshot
from irgym.conformance.rule import StateRule
from irgym.core.schedule import Schedule, replay


def _fork(case: Case) -> str:
    task, state = case.task, case.state
    hash(state)
    before = snapshot(task, state)
    identity = task.identity(state)
    branches = [task.step(state, action) for action in case.legal]
    first = [snapshot(task, branch) for branch in branches]
    if changed := before.difference(snapshot(task, state)):
        return f"stepping from the state changes its {changed}: step() must return a new state"
    if identity != task.identity(state):
        return "stepping from the state changes its identity: step() must return a new state"
    for action, seen in reversed(list(zip(case.legal, first, strict=True))):
        if changed := seen.difference(snapshot(task, task.step(state, action))):
            return f"{task.space.text(action)}, stepped twice from the state, gives two values of {changed}"
    for action, seen, branch in zip(case.legal, first, branches, strict=True):
        if changed := seen.difference(snapshot(task, branch)):
            return f"stepping other branches changes the {changed} after {task.space.text(action)}"
    return ""


def _replay(case: Case) -> str:
    task = case.task
    again = replay(task, case.schedule)
    if changed := snapshot(task, case.state).difference(snapshot(task, again)):
        return f"replaying the schedule gives another {changed}"
    if task.identity(again) != task.identity(case.state):
        return "replaying the schedule gives another identity"
    if hash(again) != hash(case.state) and again == case.state:
        return "replaying the schedule gives an equal state with another hash"
    return ""


def _batch(case: Case) -> str:
    task, actions = case.task, list(case.legal)
    together = task.step_batch([case.state] * len(actions), actions)
    if len(together) != len(actions):
        return f"step_batch() returns {len(together)} states for {len(actions)}"
    for action, state in zip(actions, together, strict=True):
        if changed := snapshot(task, state).difference(snapshot(task, task.step(case.state, action))):
            return f"step_batch() and step() differ in the {changed} after {task.space.text(action)}"
    return ""


def _texts(case: Case) -> str:
    space = case.task.space
    for action in case.legal:
        text = space.text(action)
        if text.split() != [text]:
            return f"the text {text!r} of an action is not one word"
        if (parsed := space.parse(text)) != action:
            return f"{action} is written {text!r}, which parses as {parsed}"
    if Schedule.parse(case.schedule.text(space), space) != case.schedule:
        return "the text of the schedule parses as another schedule"
    return ""


VALUE_RULES = (
    StateRule(
        "fork",
        "States are hashable values: stepping from a state changes neither it nor any other state.",
        _fork,
    ),
    StateRule("replay", "Replaying a schedule leads to the same state.", _replay),
    StateRule("batch", "`step_many` returns what `step` returns for each state.", _batch),
    StateRule("text", "The texts of actions and schedules parse back.", _texts),
)
