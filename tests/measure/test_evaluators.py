from collections import Counter
from dataclasses import replace

import pytest

from irgym.base.errors import BackendError, IrgymError, StorageError
from irgym.core.cost import Call, Job, Measurement, Outcome
from irgym.measure.cache import CostCache
from irgym.measure.evaluators import CHUNK, TOGETHER, Inline, Measured, Recorded
from irgym.measure.farm import LocalFarm
from irgym.measure.isolation.protocol import Crashed, Limits, Returned, resolve


class CountingFarm:
    """Answers `m:ok` with its argument, fails at `m:stop`, and records its calls."""

    workers = 1

    def __init__(self):
        self.asked = []

    def run(self, calls):
        self.asked.append(list(calls))
        if any(call.function == "m:stop" for call in calls):
            raise KeyboardInterrupt
        return [Returned(Measurement(Outcome.OK, (call.arguments[0],))) for call in calls]

    def close(self):
        pass


def job(cost, call=None):
    return Job(call or Call("m:ok", (float(cost),)), "p://f/1", f"schedule {cost}", "tools", target="")


@pytest.fixture
def cache(tmp_path):
    with CostCache(tmp_path / "costs.sqlite", "machine") as opened:
        yield opened


@pytest.fixture(scope="module")
def farm():
    with LocalFarm(1, Limits(timeout_s=1.0)) as opened:
        yield opened


def test_equal_jobs_are_measured_once_and_answers_are_in_order(cache):
    farm = CountingFarm()
    evaluator = Measured(farm, cache)
    costs = [3, 1, 3, 2, 1]
    assert [measurement.cost for measurement in evaluator.evaluate([job(cost) for cost in costs])] == costs
    assert Counter(call.arguments[0] for call in farm.asked[0]) == {1.0: 1, 2.0: 1, 3.0: 1}
    assert (evaluator.hits, evaluator.misses) == (0, 3)


def test_it_recalls_what_it_has_measured_and_what_states_know(cache):
    evaluator = Measured(CountingFarm(), cache)
    evaluator.evaluate([job(1)])
    known = replace(job(7), known=Measurement(Outcome.OK, (7.0,)))
    assert [
        measurement and measurement.cost for measurement in evaluator.recall([job(2), job(1), known])
    ] == [None, 1.0, 7.0]
    assert [record.schedule for record in evaluator.records("p", "time", "", 5)] == ["schedule 1"]
    without = Measured(CountingFarm())
    assert without.recall([job(1)]) == [None] and without.records("p", "time", "", 5) == []


def test_afresh_each_evaluator_measures_for_itself_and_records_only_new_costs(cache):
    Measured(CountingFarm(), cache).evaluate([job(1)])
    farm = CountingFarm()
    evaluator = Measured(farm, cache).afresh()
    for _ in range(2):
        assert [measurement.cost for measurement in evaluator.evaluate([job(1), job(2)])] == [1.0, 2.0]
    assert (evaluator.hits, evaluator.misses) == (2, 2) and len(farm.asked) == 1
    assert [found and found.cost for found in Measured(farm, cache).recall([job(1), job(2)])] == [1.0, 2.0]
    evaluator.afresh().evaluate([job(1)])
    assert len(farm.asked) == 2


def test_a_batch_is_measured_program_by_program(cache):
    farm = CountingFarm()
    mixed = [replace(job(n), program=f"p://f/{n % 3}") for n in range(9)]
    assert [measurement.cost for measurement in Measured(farm, cache).evaluate(mixed)] == list(range(9))
    assert [call.arguments[0] % 3 for call in farm.asked[0]] == [0] * 3 + [1] * 3 + [2] * 3


def test_measurements_of_others_are_recorded_once_and_never_overwrite(cache):
    evaluator = Measured(CountingFarm(), cache)
    evaluator.evaluate([job(1)])
    known = replace(job(7), known=Measurement(Outcome.OK, (7.0,)))
    jobs = [job(1), job(2), job(3), job(2), known]
    found = [Measurement(Outcome.OK, (cost,)) for cost in (1.5, 2.0, 3.0, 2.5)]
    counted = evaluator.record(jobs, [*found[:2], Measurement(Outcome.CRASH), found[3], found[0]])
    assert [measurement.cost for measurement in counted] == [1.0, 2.0, float("inf"), 2.0, 7.0]
    assert [measurement.cached for measurement in counted] == [True, False, False, False, False]
    assert (evaluator.hits, evaluator.misses) == (1, 3)
    again = Recorded(cache).evaluate([job(1), job(2), job(3)])
    assert [measurement.cost for measurement in again] == [1.0, 2.0, float("inf")]
    assert [
        measurement.cost for measurement in Measured(CountingFarm()).record(jobs[1:4:2], found[1::2])
    ] == [2.0, 2.0]


class JoiningFarm(CountingFarm):
    """Answers `m:many` too, except for lists with a forbidden number."""

    def run(self, calls):
        self.asked.append(list(calls))
        return [self._reply(call) for call in calls]

    def _reply(self, call):
        given = [cost for (cost,) in call.arguments[0]] if call.function == "m:many" else call.arguments
        if 13.0 in given:
            return Crashed("thirteen")
        found = [Measurement(Outcome.OK, (cost,)) for cost in given]
        return Returned(found if call.function == "m:many" else found[0])


def joined(cost, **changes):
    return replace(job(cost), many="m:many", **changes)


def test_jobs_that_one_call_answers_are_sent_together(cache):
    farm = JoiningFarm()
    mixed = [joined(1), job(2), joined(3), joined(4, program="p://f/2"), joined(5)]
    assert [measurement.cost for measurement in Measured(farm, cache).evaluate(mixed)] == [1, 2, 3, 4, 5]
    [asked] = farm.asked
    assert Counter(call.function for call in asked) == {"m:many": 1, "m:ok": 2}


def test_they_are_spread_over_workers_in_calls_of_limited_length(cache):
    farm = JoiningFarm()
    farm.workers = 3
    Measured(farm, cache).evaluate([joined(n) for n in range(12)])
    assert [len(call.arguments[0]) for call in farm.asked[0]] == [4, 4, 4]
    farm.workers = 1
    Measured(farm, cache).evaluate([joined(n) for n in range(20, 20 + TOGETHER + 5)])
    assert [len(call.arguments[0]) for call in farm.asked[1]] == [TOGETHER, 5]


def test_of_several_in_one_call_the_guilty_one_alone_fails(cache):
    farm = JoiningFarm()
    found = Measured(farm, cache).evaluate([joined(n) for n in (12, 13, 14)])
    assert [measurement.outcome for measurement in found] == [Outcome.OK, Outcome.CRASH, Outcome.OK]


def sum_of(*costs):
    parts = tuple((2.0, job(cost)) for cost in costs)
    return replace(job(0, Call("m:stop")), schedule=f"sum of {costs}", parts=parts)


def test_a_sum_is_evaluated_by_its_parts_each_once(cache):
    farm = CountingFarm()
    evaluator = Measured(farm, cache)
    found = evaluator.evaluate([sum_of(1, 3, 3), job(3), sum_of(3, 4)])
    assert [measurement.cost for measurement in found] == [14.0, 3.0, 14.0]
    assert sorted(call.arguments[0] for call in farm.asked[0]) == [1.0, 3.0, 4.0]
    again = evaluator.evaluate([sum_of(1, 4)])[0]
    assert again.cost == 10.0 and again.cached and len(farm.asked) == 1
    assert Recorded(cache).evaluate([sum_of(4, 4)])[0].cost == 16.0
    assert evaluator.recall([sum_of(1, 3, 3)]) == [None], "only the parts are recorded"
    assert evaluator.record([sum_of(1, 4)], [again]) == [again]
    assert evaluator.recall([sum_of(1, 4)]) == [None]


def test_a_sum_fails_where_a_part_does():
    refused = Measurement(Outcome.COMPILE_ERROR, detail="no such operator")
    failing = replace(job(5), known=refused)
    whole = replace(
        job(0), parts=((1.0, failing), (1.0, replace(job(1), known=Measurement(Outcome.OK, (1.0,)))))
    )
    assert Inline().evaluate([whole]) == [refused]


def test_the_cache_answers_the_second_time(cache):
    first = Measured(CountingFarm(), cache).evaluate([job(1), job(2)])
    farm = CountingFarm()
    evaluator = Measured(farm, cache)
    second = evaluator.evaluate([job(2), job(1), job(3)])
    assert [measurement.cached for measurement in first] == [False, False]
    assert second == [replace(first[1], cached=True), replace(first[0], cached=True), second[2]]
    assert not second[2].cached
    assert [call.arguments for chunk in farm.asked for call in chunk] == [(3.0,)]
    assert (evaluator.hits, evaluator.misses) == (2, 1)


def test_without_a_cache_everything_is_measured_again():
    farm = CountingFarm()
    evaluator = Measured(farm)
    evaluator.evaluate([job(1)])
    assert evaluator.evaluate([job(1)]) == [Measurement(Outcome.OK, (1.0,))]
    assert len(farm.asked) == 2


def test_no_jobs(cache):
    assert Measured(CountingFarm(), cache).evaluate([]) == []


def test_results_are_recorded_as_they_arrive(cache):
    count = 2 * CHUNK + 5
    jobs = [job(n) for n in range(count)]
    # The last chunk is interrupted: earlier ones are kept.
    stop = replace(jobs[-1], call=Call("m:stop"))
    with pytest.raises(KeyboardInterrupt):
        Measured(CountingFarm(), cache).evaluate([*jobs[:-1], stop])
    assert sum(measurement is not None for measurement in cache.get_many(jobs)) >= CHUNK


def test_candidates_that_fail_are_outcomes_and_are_kept(farm, cache, planted):
    calls = {
        "fine": planted("measurement", 4.0),
        "crash": planted("segfault"),
        "hang": planted("native_hang"),
        "greedy": planted("exhaust"),
        "refused": planted("compile_error"),
        "also fine": planted("measurement", 5.0),
    }
    jobs = [job(name, call) for name, call in calls.items()]
    measurements = Measured(farm, cache).evaluate(jobs)
    assert [measurement.outcome for measurement in measurements] == [
        Outcome.OK,
        Outcome.CRASH,
        Outcome.TIMEOUT,
        Outcome.OUT_OF_MEMORY,
        Outcome.COMPILE_ERROR,
        Outcome.OK,
    ]
    assert all(measurement.detail for measurement in measurements[1:5])
    assert Measured(CountingFarm(), cache).evaluate(jobs) == [
        replace(measurement, cached=True) for measurement in measurements
    ]


@pytest.mark.parametrize(
    ("name", "outcome"),
    [("segfault", Outcome.CRASH), ("native_hang", Outcome.TIMEOUT), ("exhaust", Outcome.OUT_OF_MEMORY)],
)
def test_a_failure_of_the_program_as_written_is_not_recorded(farm, cache, planted, name, outcome):
    written = replace(job("written", planted(name)), original=True)
    evaluator = Measured(farm, cache)
    assert evaluator.evaluate([written])[0].outcome is outcome
    assert evaluator.record([written], [Measurement(outcome)])[0].outcome is outcome
    assert cache.get_many([written]) == [None]
    mended = replace(written, call=planted("measurement", 2.0))
    assert evaluator.evaluate([mended])[0].cost == 2.0
    assert Measured(CountingFarm(), cache).evaluate([written])[0].cost == 2.0


@pytest.mark.parametrize(("name", "arguments"), [("end_by", (9,)), ("nap", (60,))])
def test_an_original_program_stopped_by_the_machine_is_an_error(farm, cache, planted, name, arguments):
    written = replace(job("written", planted(name, *arguments)), original=True)
    others = [job("other", planted("measurement", 1.0)), job("third", planted(name, *arguments))]
    with pytest.raises(IrgymError, match=r"the original program .* cannot be measured here"):
        Measured(farm, cache).evaluate([others[0], written, others[1]])
    assert [measurement and measurement.ok for measurement in cache.get_many([written, *others])] == [
        None,
        True,
        False,
    ]


def test_a_bug_keeps_its_traceback_and_is_not_recorded(farm, cache, planted):
    jobs = [job("good", planted("measurement", 1.0)), job("bad", planted("fail", "reason"))]
    with pytest.raises(RuntimeError, match=r"planted\.py(.|\n)*KeyError: 'reason'"):
        Measured(farm, cache).evaluate(jobs)
    assert [measurement is not None for measurement in cache.get_many(jobs)] == [True, False]


def test_an_error_of_the_user_stays_one(farm, cache, planted):
    with pytest.raises(BackendError, match="install the compiler"):
        Measured(farm, cache).evaluate([job("x", planted("user_error"))])


def test_an_answer_that_is_no_measurement_is_a_bug(farm, planted):
    wrong = job("x", planted("double", 1))
    for evaluator in (Measured(farm), Inline()):
        with pytest.raises(TypeError, match="returned int, not a Measurement"):
            evaluator.evaluate([wrong])


def test_inline_runs_here(planted):
    assert Inline().evaluate([job("x", planted("measurement", 7.0))]) == [
        Measurement(Outcome.OK, (7.0,), 0.5)
    ]


def test_recorded_answers_from_the_cache_alone(cache):
    measured = Measured(CountingFarm(), cache).evaluate([job(1), job(2)])
    recorded = Recorded(cache)
    assert recorded.evaluate([job(2), job(1), job(2)]) == [
        replace(measured[n], cached=True) for n in (1, 0, 1)
    ]
    with pytest.raises(StorageError, match="schedule 3"):
        recorded.evaluate([job(1), job(3)])


def test_resolve():
    assert resolve(Call("math:sqrt"))(4) == 2
    with pytest.raises(ValueError, match=r"package\.module:function"):
        resolve(Call("math.sqrt"))


def test_a_batch_that_may_have_to_end_begins_with_a_job_for_each_worker(cache):
    farm, asked = CountingFarm(), []
    evaluator = Measured(farm, cache)
    evaluator.cautious = True
    evaluator.before_chunk = lambda done, count: asked.append((done, count))
    evaluator.evaluate([job(n) for n in range(5)])
    assert len(farm.asked[0]) == farm.workers and asked[:2] == [(0, 5), (farm.workers, 5)]
