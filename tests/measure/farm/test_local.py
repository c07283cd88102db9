import sys

import pytest

from irgym.measure.farm import LocalFarm
from irgym.measure.isolation.protocol import Crashed, Limits, Returned, TimedOut
from irgym.measure.machine import timing_core


@pytest.fixture(params=[1, 2])
def farm(request):
    with LocalFarm(request.param, Limits(timeout_s=0.3)) as opened:
        assert opened.workers == request.param
        yield opened


def test_replies_are_in_order_whatever_becomes_of_the_calls(farm, planted):
    calls = [planted("double", n) for n in range(30)]
    calls[7], calls[20], calls[29] = planted("leave", 3), planted("native_hang"), planted("segfault")
    replies = farm.run(calls)
    assert isinstance(replies[7], Crashed)
    assert replies[20] == TimedOut(0.3)
    assert isinstance(replies[29], Crashed)
    good = [n for n in range(30) if n not in (7, 20, 29)]
    assert [replies[n] for n in good] == [Returned(2 * n) for n in good]


def test_the_workers_stay(farm, planted):
    calls = [planted("process_id")] * 12
    seen = {reply.value for _ in range(3) for reply in farm.run(calls)}
    assert len(seen) <= farm.workers


def test_no_calls_need_no_worker(farm):
    assert farm.run([]) == []


def test_workers_run_at_the_same_time(planted):
    with LocalFarm(2, Limits(timeout_s=10)) as farm:
        replies = farm.run([planted("nap_and_tell", 0.05)] * 16)
    spans = [reply.value for reply in replies]
    assert any(a_begin < b_begin < a_end for _, a_begin, a_end in spans for _, b_begin, _ in spans)
    assert len({worker for worker, _, _ in spans}) == 2


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")
def test_one_worker_is_pinned_and_several_are_not(planted):
    with LocalFarm() as farm:
        assert farm.run([planted("affinity")]) == [Returned({timing_core()})]
    with LocalFarm(2) as farm:
        [free] = farm.run([planted("affinity")])
        [timing] = farm.run([planted("affinity_while_timing")])
    assert timing == Returned({timing_core()})
    assert free.value >= timing.value


def test_costs_of_other_numbers_of_threads_are_kept_apart():
    single, double = (LocalFarm(limits=Limits(threads=count, core=timing_core())) for count in (1, 2))
    with single, double:
        assert single.conditions != double.conditions
        assert "1 thread on core " in single.machine and "2 threads on core" in double.machine


def test_few_calls_are_shared_by_all_workers(planted):
    with LocalFarm(2, Limits(timeout_s=10)) as farm:
        replies = farm.run([planted("nap_and_tell", 0.5)] * 2)
    assert len({reply.value[0] for reply in replies}) == 2


def test_a_farm_without_workers_is_refused():
    with pytest.raises(ValueError, match="at least one worker"):
        LocalFarm(0)
