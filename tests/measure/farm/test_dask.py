"""Calls on two real workers, where only candidates fail."""

import os
import signal
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
from farm_site import wait_until
from hypothesis import given, settings
from hypothesis import strategies as st

from irgym.base.errors import StorageError
from irgym.core.cost import Call, Job, Outcome
from irgym.measure.bench import MeasuringBench
from irgym.measure.cache import CostCache
from irgym.measure.farm import LocalFarm
from irgym.measure.farm.dask import DaskFarm
from irgym.measure.isolation.child import ChildError
from irgym.measure.isolation.protocol import Crashed, Limits, OutOfMemory, Raised, Returned, TimedOut

LIMITS = Limits(timeout_s=1.5, memory_bytes=100 << 20)


@pytest.fixture(scope="module")
def farm(shared):
    with DaskFarm(shared.endpoint, LIMITS) as opened:
        yield opened


SEEN = {
    "double": lambda n, reply: reply == Returned(2 * n),
    "nap": lambda n, reply: reply == Returned(n / 1000),
    "blob": lambda n, reply: reply == Returned(bytes(n)),
    "fail": lambda n, reply: isinstance(reply, Raised) and str(n) in reply.message,
    "leave": lambda n, reply: isinstance(reply, Crashed) and f"status {n}" in reply.detail,
}
"""Predicates that a reply belongs to the n-th call."""
ARGUMENT = {"nap": lambda n: n / 1000, "fail": str}
NAMES = st.sampled_from(["double"] * 12 + ["nap", "blob", "fail", "leave"])


@settings(max_examples=12, deadline=None)
@given(names=st.lists(NAMES, max_size=40))
def test_each_call_gets_its_own_reply_in_order(farm, names):
    calls = [Call(f"planted:{name}", (ARGUMENT.get(name, int)(n),)) for n, name in enumerate(names, start=1)]
    replies = farm.run(calls)
    assert len(replies) == len(names)
    assert all(
        SEEN[name](n, reply) for n, (name, reply) in enumerate(zip(names, replies, strict=True), start=1)
    )


def test_candidates_do_no_harm_to_workers(farm, planted):
    bad = {
        "segfault": Crashed,
        "jump_to_zero": Crashed,
        "killed": OutOfMemory,
        "native_hang": TimedOut,
        "stubborn_hang": TimedOut,
        "exhaust": OutOfMemory,
        "exhaust_by_growing": OutOfMemory,
        "fork_and_die": Crashed,
        "babble": Crashed,
        "close_pipes": Crashed,
        "user_error": Raised,
    }
    before = farm.members()
    calls = [call for name in bad for call in (planted(name), planted("double", 1))]
    replies = farm.run(calls)
    assert [type(reply) for reply in replies[::2]] == list(bad.values())
    assert replies[1::2] == [Returned(2)] * len(bad)
    failed = sum(member.activity.failed for member in before) + len(bad)
    wait_until(lambda: sum(member.activity.failed for member in farm.members()) >= failed)
    wait_until(lambda: not any(member.activity.running for member in farm.members()))
    assert [member.name for member in farm.members()] == [member.name for member in before]


def test_a_call_that_was_killed_from_outside_runs_again(farm, planted, tmp_path):
    notes = tmp_path / "notes"

    def kill():
        wait_until(lambda: notes.exists() and notes.read_text().endswith("\n"))
        os.kill(int(notes.read_text()), signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    assert farm.run([planted("note_and_nap", str(notes), 0.5)]) == [Returned(0.5)]
    killer.join()
    assert len(notes.read_text().split()) == 2


def test_an_error_of_the_user_on_a_worker_is_one_sentence(farm):
    future = SimpleNamespace(
        status="error", exception=lambda timeout: StorageError("continue it by kill -CONT 7")
    )
    with pytest.raises(StorageError, match="kill -CONT 7"):
        farm._answers_of(future)


def test_a_module_that_kills_who_imports_it(farm):
    with pytest.raises(ChildError, match="does not work"):
        farm.run([Call("planted_crash_on_import:anything")])
    assert farm.run([Call("planted:double", (1,))]) == [Returned(2)]


def test_both_workers_work_at_the_same_time(farm, planted):
    spans = [reply.value for reply in farm.run([planted("nap_and_tell", 0.25)] * 8)]
    assert len({worker for worker, _, _ in spans}) == 2
    assert any(a_begin < b_begin < a_end for _, a_begin, a_end in spans for _, b_begin, _ in spans)


def test_a_worker_keeps_its_child(farm, planted):
    seen = {reply.value for _ in range(3) for reply in farm.run([planted("process_id")] * 12)}
    assert len(seen) <= 2


def test_no_calls_need_no_worker(farm):
    assert farm.run([]) == []


def test_another_time_limit(farm, planted):
    assert farm.call(planted("nap", 1.6)) == TimedOut(1.5, doubtful=True)
    assert farm.call(planted("nap", 1.6), timeout_s=10.0) == Returned(1.6)


def test_two_runs_share_the_workers(shared, planted):
    replies = {}

    def run(number):
        with DaskFarm(shared.endpoint, LIMITS) as own:
            replies[number] = own.run([planted("double", number * 100 + n) for n in range(50)])

    threads = [threading.Thread(target=run, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number in range(2):
        assert replies[number] == [Returned(2 * (number * 100 + n)) for n in range(50)]


def test_it_measures_under_the_conditions_of_its_workers(farm):
    with LocalFarm(1, LIMITS) as local:
        assert farm.conditions == local.conditions
    assert farm.workers == 2 and "2 workers of dask://" in farm.machine


def test_a_bench_on_a_farm_fills_the_cache(shared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, planted):
    monkeypatch.setenv("IRGYM_CACHE_DIR", str(tmp_path))
    jobs = [Job(planted("measurement", float(n)), "p://1", f"s{n}", "1", target="") for n in range(1, 9)]
    jobs.append(Job(planted("leave", 1), "p://1", "crash", "1", target=""))
    with MeasuringBench(limits=LIMITS, farm=shared.endpoint.address) as bench:
        found = bench.evaluator.evaluate(jobs)
        assert [measurement.cost for measurement in found[:-1]] == [float(n) for n in range(1, 9)]
        assert found[-1].outcome is Outcome.CRASH
        assert bench.call(planted("double", 21)) == 42 and bench.peak_gflops > 0.1
    with MeasuringBench(limits=LIMITS) as bench:  # the workers are on this machine
        assert all(measurement.cached for measurement in bench.evaluator.evaluate(jobs))
    with CostCache(tmp_path / "costs.sqlite") as cache:
        assert cache.stats().rows == 9
