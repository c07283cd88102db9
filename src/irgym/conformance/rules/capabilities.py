"""Rules about capabilities: what a task offers beyond what it must is right where it is offered."""

import math
import pickle
from typing import Any

import numpy as np

from irgym.base.errors import IrgymError
from irgym.conformance.case import Case, snapshot
from irgym.conformance.rule import StateRule
from irgym.core.capabilities import (
    AnalysedForm,
    Analysis,
    Bounded,
    CostFeatures,
    Counted,
    Demonstrations,
    Drawn,
    Estimates,
    Finishing,
    JobFeatures,
    Listed,
    Macros,
    Parts,
    Peak,
    Preparation,
    Records,
    Sketches,
    Stages,
    Turns,
    ask,
)
from irgym.core.schedule import Schedule, replay

NO_KEY = "no such key"


def _sketches(case: Case) -> str:
    sketches = ask(case.task, Sketches)
    if sketches is None:
        return ""
    drawn = [tuple(sketches.sketch(np.random.default_rng(case.seed))) for _ in range(2)]
    if drawn[0] != drawn[1]:
        return "sketch() returns different schedules for one seed"
    if len(drawn[0]) > case.task.horizon:
        return f"a sketch has {len(drawn[0])} actions, and the horizon is {case.task.horizon}"
    replay(case.task, Schedule(drawn[0]))
    return ""


def _macros(case: Case) -> str:
    macros = ask(case.task, Macros)
    wrong = [action for action in case.legal if macros and macros.is_macro(action) not in (True, False)]
    return "is_macro() returns no boolean" if wrong else ""


def _figures(name: str, values: Any, initial: Any) -> str:
    """Return what is wrong with some figures of a state, beside those of the initial state."""
    figures = np.asarray(values)
    if figures.ndim != 1 or figures.shape != initial.shape:
        return f"{name}() returns no vector of one length"
    return "" if np.isfinite(figures).all() else f"{name}() returns a number that is not finite"


def _analysis(case: Case) -> str:
    analysis, form = ask(case.task, Analysis), ask(case.task, AnalysedForm)
    if analysis is None:
        return "" if form is None else "analysed() is there, and analysis() is not"
    initial = analysis.analysis(case.task.initial())
    if not np.allclose(initial, 1.0):
        return "analysis() of the initial state is not 1: it is a share of that state's"
    if form is not None:
        task = form.analysed()
        other = snapshot(task, replay(task, case.schedule))
        if changed := snapshot(case.task, case.state).difference(other):
            return f"the analysed form of the task has another {changed}"
    return _figures("analysis", analysis.analysis(case.state), initial)


def _cost_features(case: Case) -> str:
    features = ask(case.task, CostFeatures)
    if features is None:
        return ""
    initial, found = (features.cost_features(state) for state in (case.task.initial(), case.state))
    jobs, job = ask(case.task, JobFeatures), case.task.job(case.state)
    if jobs is not None and not job.known and not np.array_equal(jobs.job_features(job), found):
        return "job_features() of the state's job are not its cost_features()"
    return _figures("cost_features", found, initial)


def _estimates(case: Case) -> str:
    estimates = ask(case.task, Estimates)
    found = None if estimates is None else estimates.estimate(case.state)
    if found is None:
        return ""
    job = case.task.job(case.state)
    if found.objective == job.objective:
        return "estimate() has the objective of the state's job, so that it would be recorded as a cost"
    same = (found.program, found.schedule, found.target) == (job.program, job.schedule, job.target)
    return "" if same else "estimate() is of another program, schedule or target than the state's job"


def _records(case: Case) -> str:
    records, demonstrations = ask(case.task, Records), ask(case.task, Demonstrations)
    key = case.task.key(case.state)
    if records is not None:
        found = records.recorded(key)
        if found is not None and case.task.key(found) != key:
            return "recorded() returns a state with another key"
        if records.recorded(NO_KEY) is not None:
            return f"recorded() returns a state for {NO_KEY!r}"
    if demonstrations is not None:
        actions = demonstrations.recorded_actions(key)
        if actions is not None and case.task.key(replay(case.task, Schedule(tuple(actions)))) != key:
            return "recorded_actions() leads to a state with another key"
    return ""


def _parts(case: Case) -> str:
    parts = ask(case.task, Parts)
    tasks = [] if parts is None else list(parts.parts())
    if parts is None or not tasks:
        return ""
    if len(tasks) == 1:
        return "parts() returns one part: leave it out, or return at least two"
    replay(case.task, parts.joined([Schedule()] * len(tasks)))
    return ""


def _finishing(case: Case) -> str:
    finishing = ask(case.task, Finishing)
    if finishing is None or case.task.terminal(case.state):
        return ""
    state = case.state
    for action in finishing.finishing(state).actions:
        if not case.task.accepts(state, action):
            return f"finishing() takes {case.task.space.text(action)}, which does not apply"
        state = case.task.step(state, action)
    return ""


def _figures_of_programs(case: Case) -> str:
    counted, bounded = ask(case.task, Counted), ask(case.task, Bounded)
    if counted is not None and counted.programs() < 1:
        return f"programs() returns {counted.programs()}: the original program counts too"
    if bounded is not None and not (0 <= bounded.ideal_cost(1.0) < math.inf):
        return f"ideal_cost() returns {bounded.ideal_cost(1.0)}"
    return ""


def _calls(case: Case) -> str:
    preparation, peak, stages = ask(case.task, Preparation), ask(case.task, Peak), ask(case.task, Stages)
    calls = [
        None if preparation is None else preparation.preparation(1, 0),
        None if peak is None else peak.peak_call(case.state),
        None if stages is None else stages.stage_call(case.task.initial(), case.state),
    ]
    for call in calls:
        if call is not None and pickle.loads(pickle.dumps(call)).function != call.function:
            return f"the call of {call.function} does not survive pickling"
    return ""


def _turns(case: Case) -> str:
    turns = ask(case.task, Turns)
    if turns is None:
        return ""
    if not case.actions and turns.taken(case.state) != 0:
        return f"taken() is {turns.taken(case.state)} in the initial state, and must be 0"
    now = turns.taken(case.state)
    for action in case.legal:
        kind = case.task.space.kinds[action.kind]
        after = turns.taken(case.task.step(case.state, action))
        wanted = {0} if kind.ends == "turn" else {now, now + 1}
        if after not in wanted:
            return f"taken() is {now}, and {after} after {case.task.space.text(action)}"
    return ""


def _shown(case: Case) -> str:
    drawn, listed = ask(case.task, Drawn), ask(case.task, Listed)
    if drawn is not None:
        drawn.drawing(case.state)  # checks itself when it is made
    if listed is None:
        return ""
    try:
        empty = [name for name, text in listed.listings(case.state).items() if not text]
    except IrgymError:
        return ""
    return f"the listing {empty[0]!r} is empty" if empty else ""


CAPABILITY_RULES = (
    StateRule("sketches", "A sketch is a schedule that replays within the horizon.", _sketches, "ends"),
    StateRule("macros", "`is_macro` answers for every action.", _macros, "ends"),
    StateRule(
        "analysis",
        "The analysis is a finite vector of one length, 1 at the start; `analysed` changes no state.",
        _analysis,
    ),
    StateRule(
        "cost-features",
        "Cost features are a finite vector of one length; a job tells them too.",
        _cost_features,
    ),
    StateRule("estimates", "An estimate is of the state, under another objective than its job.", _estimates),
    StateRule("records", "States and actions read back from a key lead to that key.", _records),
    StateRule("turns", "`taken` counts from 0 in each turn, by at most 1.", _turns),
    StateRule("parts", "Schedules of the parts can be joined.", _parts, "ends"),
    StateRule("finishing", "The finishing schedule can be taken.", _finishing, "ends"),
    StateRule("counts", "`programs` is at least 1, and `ideal_cost` finite.", _figures_of_programs, "ends"),
    StateRule("calls", "The calls of capabilities can be pickled.", _calls, "ends"),
    StateRule("shown", "Drawings are consistent, and listings not empty.", _shown, "ends"),
)
