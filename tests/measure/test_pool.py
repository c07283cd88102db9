"""Keys stay with their holders, other requests balance the load, and failures affect no other request."""

import os
import signal
import threading
import time
from collections import Counter
from operator import itemgetter

import pytest

from irgym.core.cost import Call
from irgym.measure.isolation.protocol import Crashed, Limits, OutOfMemory, Raised, Returned, TimedOut
from irgym.measure.pool import WorkerPool

STEP = "planted_pool:step"
KEY = itemgetter(0)


@pytest.fixture
def pool():
    with WorkerPool(Limits(timeout_s=0.5), workers=2) as workers:
        yield workers


def run(pool, *arguments, **keywords):
    return pool.begin(*arguments, at_once=True, **keywords)()


def values(replies):
    assert all(isinstance(reply, Returned) for reply in replies), replies
    return [reply.value for reply in replies]


def test_nothing_starts_before_it_is_used(monkeypatch):
    def started(limits):
        raise AssertionError("a process was started")

    monkeypatch.setattr("irgym.measure.isolation.child.Process", started)
    with WorkerPool(Limits(), workers=2) as pool:
        assert pool.workers == 2
        assert run(pool, STEP, [], KEY) == []


def test_requests_without_a_holder_even_the_workers_out(pool):
    processes = Counter(pid for pid, _, _ in values(run(pool, STEP, [(f"k{n}", "") for n in range(6)], KEY)))
    assert sorted(processes.values()) == [3, 3] and os.getpid() not in processes


def test_a_key_stays_where_it_is_loaded(pool):
    requests = [(f"k{n}", "") for n in range(6)]
    first = values(run(pool, STEP, requests, KEY))
    assert not any(loaded for _, loaded, _ in first)
    again = dict(zip(requests[::-1], values(run(pool, STEP, requests[::-1], KEY)), strict=True))
    for request, (pid, _, _) in zip(requests, first, strict=True):
        assert again[request][:2] == (pid, True)
    for key in ("k0", "k5"):
        [reply] = [pool.call(Call("planted_pool:loaded"), key)]
        assert isinstance(reply, Returned) and key in reply.value[1]


def test_a_new_key_goes_to_the_least_busy_worker(pool):
    [(holder, _, _)] = values(run(pool, STEP, [("held", "")], KEY))
    mixed = [("new", ""), ("held", ""), ("newer", ""), ("held", "")]
    (new, *_), (held, *_), (newer, *_), _ = values(run(pool, STEP, mixed, KEY))
    assert held == holder and new == newer != holder


def test_a_worker_holds_the_key_that_its_answer_leaves(pool):
    def left(request, answer):
        return f"after {request[0]}"

    first = values(run(pool, STEP, [("a", ""), ("b", "")], KEY, left))
    again = values(run(pool, STEP, [("after b", ""), ("after a", ""), ("a", ""), ("a", "")], KEY))
    assert [pid for pid, _, _ in again[:2]] == [pid for pid, _, _ in first[::-1]]
    assert {pid for pid, _, _ in again[2:]} == {pid for pid, _, _ in first}, "nothing said that it holds a"


def test_equal_keys_come_side_by_side():
    with WorkerPool(Limits(), workers=1) as pool:
        requests = [(key, "") for key in "abcabca"]
        assert values(run(pool, "planted_pool:order", requests, KEY))[0] == [*"aaabbcc"]


def test_long_requests_are_shared_out(pool):
    requests = [(key, "") for key in "abcd"]
    found = values(run(pool, STEP, requests, KEY, weights=[1.0, 1.0, 5.0, 3.0]))
    pids = [pid for pid, _, _ in found]
    assert pids[0] == pids[1] == pids[3] != pids[2]


def test_requests_that_were_begun_run_while_others_are_begun(pool):
    started = time.monotonic()
    first = pool.begin(STEP, [("a", "nap"), ("b", "nap")], KEY)
    second = pool.begin(STEP, [("c", ""), ("d", "")], KEY)
    assert time.monotonic() - started < 0.3
    others = {pid for pid, _, _ in values(second())}
    assert {pid for pid, _, _ in values(first())} == others and len(others) == 2
    assert [pool.call(Call("planted_pool:loaded"), key).value[1] for key in "ab"] == [["a", "c"], ["b", "d"]]


def test_what_a_worker_has_to_do_counts_where_others_are_begun(pool):
    first = pool.begin(STEP, [("a", "nap")], KEY)
    [(pid, _, _)] = values(run(pool, STEP, [("b", "")], KEY))
    assert values(first())[0][0] != pid


def test_a_worker_that_dies_does_what_was_begun_after(pool):
    values(run(pool, STEP, [("a", ""), ("b", "")], KEY))
    first, second = (pool.begin(STEP, [("a", behaviour)], KEY) for behaviour in ("abort", ""))
    assert isinstance(first()[0], Crashed)
    [(_, loaded, _)] = values(second())
    assert not loaded


@pytest.mark.parametrize(
    ("behaviour", "outcome"),
    [("abort", Crashed), ("hang", TimedOut), ("raise", Raised), ("greedy", OutOfMemory)],
)
def test_a_failure_costs_its_own_request_only(pool, behaviour, outcome):
    requests = [("a", ""), ("b", ""), ("c", behaviour), ("d", ""), ("e", ""), ("f", "")]
    replies = run(pool, STEP, requests, KEY)
    assert isinstance(replies[2], outcome)
    assert len(values(replies[:2] + replies[3:])) == 5
    assert isinstance(run(pool, STEP, [("c", behaviour)], KEY)[0], outcome)
    assert len(values(run(pool, STEP, [(key, "") for key in "abcdef"], KEY))) == 6


def test_a_worker_that_was_killed_is_replaced(pool):
    [(pid, _, _)] = values(run(pool, STEP, [("a", "")], KEY))
    os.kill(pid, signal.SIGKILL)
    [(other, loaded, _)] = values(run(pool, STEP, [("a", "")], KEY))
    assert other != pid and not loaded
    assert values(run(pool, STEP, [("a", "")], KEY)) == [(other, True, 1)]


@pytest.mark.parametrize(("remembered", "loaded"), [(2, True), (1, False)])
def test_the_oldest_keys_are_forgotten(remembered, loaded):
    with WorkerPool(Limits(), workers=2, remembered=remembered) as pool:
        run(pool, STEP, [("old", ""), ("young", "")], KEY)
        _, (_, found, _) = values(run(pool, STEP, [("new", ""), ("old", "")], KEY))
        assert found == loaded


def test_too_few_answers_are_a_bug(pool):
    with pytest.raises(ValueError, match="zip"):
        run(pool, "planted_pool:loaded_none", [("a", ""), ("b", ""), ("c", "")], KEY)


def test_an_interrupt_stops_all_workers(pool):
    run(pool, STEP, [("a", ""), ("b", "")], KEY)
    threading.Timer(0.3, signal.raise_signal, (signal.SIGINT,)).start()
    with pytest.raises(KeyboardInterrupt):
        run(pool, STEP, [("a", "hang"), ("b", "hang")], KEY)
    assert len(values(run(pool, STEP, [("a", ""), ("b", "")], KEY))) == 2


def test_ended_processes_are_gone():
    with WorkerPool(Limits(), workers=2) as pool:
        processes = [pid for pid, _, _ in values(run(pool, STEP, [("a", ""), ("b", "")], KEY))]
    for pid in processes:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
