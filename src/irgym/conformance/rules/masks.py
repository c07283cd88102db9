"""Rules about masks: well formed, exact, and consistent with the end of an episode."""

from dataclasses import replace

from irgym.base.errors import ScheduleError
from irgym.conformance.case import DRAWN, Case
from irgym.conformance.rule import StateRule, attempt, words_of
from irgym.core.actions import Action
from irgym.core.capabilities import endings, running
from irgym.core.schedule import Schedule, states_along


def _well_formed(case: Case) -> str:
    space, mask = case.task.space, case.mask
    wanted = (("kinds", mask.kinds, len(space.kinds)), ("parameters", mask.params, space.param_count))
    for name, array, length in wanted:
        if array.shape != (length,) or array.dtype != bool:
            return f"the mask's {name} are {array.dtype}{list(array.shape)}: give {length} booleans"
    for kind, name in mask.candidates:
        if not 0 <= kind < len(space.kinds) or not space.kinds[kind].candidates:
            return f"the candidate {name!r} is of kind {kind}, which has no candidates"
        if name.replace(",", " ").split() != [name]:
            return f"the candidate {name!r} is no word without white space and commas"
    if len(set(mask.candidates)) < len(mask.candidates):
        return "a candidate is listed twice"
    for kind in space.takeable(mask):
        if not all(space.choices(mask, kind)):
            return f"the kind {space.kinds[kind].name} is allowed, but no choice in one of its slots"
    return ""


def _allowed_actions_step(case: Case) -> str:
    for action in case.legal:
        text = case.task.space.text(action)
        if not case.task.accepts(replace(case).state, action):
            return f"the mask allows {text}, and accepts() refuses it"
        state = replace(case).state  # made again: a step that changes its argument breaks another rule
        _, error = attempt(case.task.step, state, action)
        if error is not None:
            return f"the mask allows {text}, and step() raises {words_of(error)}"
    return ""


def _forbidden(case: Case) -> list[Action]:
    """Return some actions that the mask forbids."""
    space, rng = case.task.space, case.rng
    drawn: list[Action] = []
    for _ in range(4 * DRAWN):
        kind = int(rng.integers(len(space.kinds)))
        params = tuple(int(rng.integers(size)) for size in space.slot_sizes[kind])
        drawn.append(Action(kind, params, "no-such-candidate" if space.kinds[kind].candidates else ""))
    return [action for action in dict.fromkeys(drawn) if not space.allows(case.mask, action)][:DRAWN]


def _forbidden_actions_are_refused(case: Case) -> str:
    task = case.task
    offered = set(endings(task, case.state))
    for action in _forbidden(case):
        text = task.space.text(action)
        if action in offered:
            continue
        if task.accepts(case.state, action):
            return f"the mask forbids {text}, and accepts() takes it, though it is none of endings()"
        try:
            states_along(task, Schedule((*case.actions, action)))
        except ScheduleError:
            continue
        return f"the mask forbids {text}, and a replay takes it"
    return ""


def _terminal_states_have_no_actions(case: Case) -> str:
    takeable = case.task.space.takeable(case.mask)
    if case.task.terminal(case.state):
        return "terminal() is true, and the mask allows actions" if takeable else ""
    if not takeable and len(case.actions) < case.task.horizon:
        return "the mask allows nothing, and terminal() is false"
    return ""


def _stops_end(case: Case) -> str:
    task = case.task
    key = task.key(case.state)
    for action in case.legal:
        kind = task.space.kinds[action.kind]
        if kind.ends is None:
            continue
        after = task.step(case.state, action)
        if kind.ends == "episode" and not task.terminal(after):
            return f"{kind.name} ends the episode, and terminal() is false after it"
        runs_alike = running(task, after) == running(task, case.state)
        if task.key(after) != key and runs_alike:
            return f"{kind.name} ends the {kind.ends} and must leave the program as it is: its key changes"
    return ""


def _endings(case: Case) -> str:
    task = case.task
    for action in endings(task, case.state):
        text = task.space.text(action)
        if task.space.allows(case.mask, action):
            return f"{text} is one of endings(), and the mask allows it"
        if not task.accepts(case.state, action):
            return f"{text} is one of endings(), and accepts() refuses it"
        if not task.terminal(task.step(case.state, action)):
            return f"{text} is one of endings(), and terminal() is false after it"
    return ""


MASK_RULES = (
    StateRule(
        "mask", "A mask has the shapes of the space, and its candidates are distinct words.", _well_formed
    ),
    StateRule("allowed", "Every action that the mask allows can be stepped.", _allowed_actions_step),
    StateRule(
        "forbidden",
        "An action that the mask forbids is refused by `accepts`, and by a replay with a `ScheduleError`; "
        "`endings` are the exception.",
        _forbidden_actions_are_refused,
    ),
    StateRule(
        "terminal",
        "A state is terminal exactly if its mask allows nothing.",
        _terminal_states_have_no_actions,
    ),
    StateRule(
        "stop",
        "An action of a kind that ends the episode leads to a terminal state; like one that ends a turn, it "
        "leaves the key as it is, unless the program is to be run in another way (`running`).",
        _stops_end,
    ),
    StateRule(
        "endings", "`endings` are accepted, are not in the mask, and lead to terminal states.", _endings
    ),
)
