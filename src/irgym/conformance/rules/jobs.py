"""Rules about keys, jobs and costs."""

import math
import pickle

from irgym.conformance.case import Case
from irgym.conformance.rule import PairRule, StateRule
from irgym.core.capabilities import cost_features
from irgym.core.cost import Job, Measurement, Validation
from irgym.measure.evaluators import identity_of


def _job(case: Case) -> str:
    task, state = case.task, case.state
    job = task.job(state)
    expected = {
        "schedule": (job.schedule, task.key(state)),
        "program": (job.program, task.uri),
        "objective": (job.objective, task.objective.name),
        "target": (job.target, task.target_text),
    }
    for name, (given, wanted) in expected.items():
        if given != wanted:
            return f"the job's {name} is {given!r}, and the task's is {wanted!r}"
    if job.known is None and not job.parts and not job.toolchain:
        return "the job's toolchain is empty: name what makes the code, with versions"
    if identity_of(job) != identity_of(task.job(state)) or job.call != task.job(state).call:
        return "two calls of job() return different jobs"
    for call in (job.call, task.validation(state, 1, 0)):
        if pickle.loads(pickle.dumps(call)).function != call.function:
            return f"the call of {call.function} does not survive pickling"
    return ""


def _original(case: Case) -> str:
    if case.actions:
        return ""
    job = case.task.job(case.state)
    measured = job.known is None and not job.parts
    return "the job of the original program lacks original=True" if measured and not job.original else ""


def _cost_error(measurement: object) -> str:
    """Return what is wrong with a measurement; empty where nothing is."""
    if not isinstance(measurement, Measurement):
        return f"a measurement is {type(measurement).__name__}"
    if not measurement.ok:
        return "" if measurement.detail else f"a failure ({measurement.outcome.value}) has no detail"
    if not measurement.samples:
        return "a successful measurement has no samples"
    if not all(math.isfinite(sample) and sample >= 0 for sample in measurement.samples):
        return f"a cost is {measurement.cost}"
    return ""


def _known(case: Case) -> str:
    known = case.task.job(case.state).known
    return "" if known is None else _cost_error(known)


def _evaluated(case: Case) -> str:
    assert case.bench is not None
    job, first = case.task.job(case.state), case.task.job(case.task.initial())
    answers = case.bench.evaluator.evaluate([first, job, first])
    if len(answers) != 3:
        return f"evaluating 3 jobs returns {len(answers)} measurements"
    if not answers[0].ok:
        return f"the original program fails: {answers[0].detail}"
    if answers[0] != answers[2]:
        return "one job has two results in one batch"
    return _cost_error(answers[1])


def _repeatable(case: Case) -> str:
    assert case.bench is not None
    if not case.task.objective.exact:
        return ""
    costs = {case.bench.measure([case.task.job(case.state)])[0].cost for _ in range(2)}
    return f"the objective is exact, and two measurements give {sorted(costs)}" if len(costs) > 1 else ""


def _measured(job: Job, case: Case) -> float:
    """Return the cost of a job's call, run on the bench."""
    assert case.bench is not None
    return case.bench.call(job.call).cost


def _known_is_measured(case: Case) -> str:
    job = case.task.job(case.state)
    if job.known is None or not job.known.ok or not job.call.function:
        return ""
    cost = _measured(job, case)
    return (
        f"the state knows the cost {job.known.cost}, and its call returns {cost}"
        if cost != job.known.cost
        else ""
    )


def _validates(case: Case) -> str:
    assert case.bench is not None
    job = case.task.job(case.state)
    if not case.bench.evaluator.evaluate([job])[0].ok:
        return ""  # what does not run cannot be compared
    found = case.bench.call(case.task.validation(case.state, 1, case.seed))
    if not isinstance(found, Validation):
        return f"the validation returns {type(found).__name__}"
    if not found.ok:
        return f"the program computes something else than the original: {found.detail}"
    if found.inputs < 1 and not found.blind:
        return "the validation on 1 input compares none, and does not say why in `blind`"
    return ""


def _validation(case: Case) -> str:
    task, first = case.task, case.task.initial()
    if task.key(case.state) == task.key(first):
        return ""
    same = task.validation(case.state, 1, 0) == task.validation(first, 1, 0)
    return "the call that validates is that of the original program, which has another key" if same else ""


def _equal_jobs(first: Case, second: Case) -> str:
    jobs = first.task.job(first.state), second.task.job(second.state)
    if identity_of(jobs[0]) != identity_of(jobs[1]):
        return "equal keys come with different jobs"
    if (jobs[0].known is None) != (jobs[1].known is None):
        return "equal keys come with a known cost and an unknown one"
    if jobs[0].known and jobs[1].known and jobs[0].known.cost != jobs[1].known.cost:
        return f"equal keys come with the known costs {jobs[0].known.cost} and {jobs[1].known.cost}"
    figures = [cost_features(case.task, case.state) for case in (first, second)]
    if figures[0] is not None and figures[1] is not None and not (figures[0] == figures[1]).all():
        return "equal keys come with different cost features"
    return ""


def _equal_costs(first: Case, second: Case) -> str:
    task, bench = first.task, first.bench
    assert bench is not None
    jobs = [task.job(case.state) for case in (first, second)]
    if not task.objective.exact or jobs[0].call == jobs[1].call or jobs[0].known:
        return ""
    # Each alone: the evaluator would measure only one of two equal jobs.
    costs = [bench.measure([job])[0].cost for job in jobs]
    return f"equal keys come with the costs {costs[0]} and {costs[1]}" if costs[0] != costs[1] else ""


JOB_RULES = (
    StateRule(
        "job",
        "A job is the same at each call, can be pickled, and carries the task's program, objective and "
        "target, the state's key, and a toolchain.",
        _job,
    ),
    StateRule(
        "original", "The job of the original program has `original=True` where it is measured.", _original
    ),
    StateRule("known", "Known costs are finite, or failures with a detail.", _known),
    StateRule(
        "evaluated",
        "Every state costs one evaluation: a failure is a measurement too, and spoils no other state's.",
        _evaluated,
        measures=True,
    ),
    StateRule(
        "exact", "Under an exact objective, measuring again gives the same cost.", _repeatable, "ends", True
    ),
    StateRule(
        "known-measured",
        "A known cost equals the one that the job's call returns.",
        _known_is_measured,
        "ends",
        True,
    ),
    StateRule("validation", "The call that validates depends on the program.", _validation),
    StateRule("validates", "Every schedule computes what the original computes.", _validates, "once", True),
)

KEY_RULES = (
    PairRule("key", "Equal keys mean equal jobs, known costs and cost features.", _equal_jobs),
    PairRule("equal-costs", "Under an exact objective, equal keys mean equal costs.", _equal_costs, True),
)
