import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from irgym.core.cost import Call
from irgym.core.errors import BackendError
from irgym.measure.child import (
    Child,
    ChildError,
    Crashed,
    Limits,
    OutOfMemory,
    Packed,
    Raised,
    Returned,
    TimedOut,
    pack,
    unpack,
)
from irgym.measure.machine import core_lock, timing_core

linux = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")


def running(pid):
    """Whether a process exists and is more than a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_until(condition, seconds=5.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_returns_a_value_and_keeps_the_process(child, planted):
    assert child.call(planted("double", 21)) == Returned(42)
    first = child.call(planted("process_id"))
    assert first == child.call(planted("process_id"))
    assert first.value != os.getpid()


def test_stream_answers_in_order(child, planted):
    assert list(child.stream(planted("double", n) for n in range(100))) == [
        Returned(2 * n) for n in range(100)
    ]


def test_large_arguments_and_answers_do_not_deadlock(child, planted):
    size = 3_000_000
    calls = [planted("length", bytes(size)), planted("blob", size)] * 4
    replies = list(child.stream(calls))
    assert [r.value if isinstance(r.value, int) else len(r.value) for r in replies] == [size] * 8


@pytest.mark.parametrize(
    ("name", "arguments", "word"),
    [
        ("segfault", (), "SIGSEGV"),
        ("jump_to_zero", (), "SIGSEGV"),
        ("leave", (3,), "status 3"),
        ("leave", (0,), "status 0"),
    ],
)
def test_a_crash_costs_that_call_only(child, planted, name, arguments, word):
    calls = [planted("double", 1), planted(name, *arguments), planted("double", 2), planted("double", 3)]
    before, crash, *after = child.stream(calls)
    assert isinstance(crash, Crashed)
    assert word in crash.detail
    assert [before, *after] == [Returned(2), Returned(4), Returned(6)]


def test_a_crash_report_has_the_last_words_of_the_culprit_only(child, planted):
    _, crash = child.stream([planted("chatter", "innocent"), planted("jump_to_zero")])
    assert "about to jump" in crash.detail
    assert "innocent" not in crash.detail
    assert "\n" not in crash.detail


@pytest.mark.parametrize("name", ["native_hang", "stubborn_hang"])
def test_a_native_hang_is_killed_and_the_rest_goes_on(child, planted, name):
    begin = time.monotonic()
    replies = list(child.stream([planted("double", 1), planted(name), planted("double", 2)]))
    assert replies == [Returned(2), TimedOut(0.3), Returned(4)]
    assert time.monotonic() - begin < 5


def test_the_clock_of_a_call_starts_when_it_runs(child, planted):
    # Together they take longer than the limit, each alone does not.
    assert list(child.stream(planted("nap", 0.1) for _ in range(6))) == [Returned(0.1)] * 6


def test_a_slow_consumer_is_not_held_against_candidates(child, planted):
    replies = []
    for reply in child.stream(planted("blob", 500_000) for _ in range(6)):
        replies.append(len(reply.value))
        time.sleep(0.35 if len(replies) < 3 else 0)
    assert replies == [500_000] * 6


@linux
@pytest.mark.parametrize("name", ["exhaust", "exhaust_by_growing"])
def test_memory_exhaustion(planted, name):
    with Child(Limits(timeout_s=5, memory_bytes=256 << 20)) as child:
        replies = list(child.stream([planted(name), planted("double", 1)]))
    assert isinstance(replies[0], OutOfMemory)
    assert replies[1] == Returned(2)


@linux
def test_memory_below_the_limit_is_granted(planted):
    with Child(Limits(timeout_s=5, memory_bytes=256 << 20)) as child:
        assert child.call(planted("hold", 200 << 20)) == Returned(200 << 20)


def test_a_kill_from_outside_counts_as_out_of_memory(child, planted):
    reply, after = child.stream([planted("killed"), planted("double", 1)])
    assert isinstance(reply, OutOfMemory)
    assert after == Returned(2)


def test_an_exception_comes_with_its_traceback(child, planted):
    pid = child.call(planted("process_id"))
    reply = child.call(planted("fail", "reason"))
    assert isinstance(reply, Raised)
    assert reply.message == "KeyError: 'reason'"
    assert "planted.py" in reply.traceback
    assert reply.user_error is None
    assert isinstance(child.call(planted("system_exit")), Raised)
    assert child.call(planted("process_id")) == pid


def test_a_user_error_keeps_its_type(child, planted):
    error = child.call(planted("user_error")).user_error
    assert isinstance(error, BackendError)
    assert str(error) == "install the compiler"


@pytest.mark.parametrize("name", ["planted:absent", "planted_absent:f", "nonsense"])
def test_a_function_that_does_not_exist_is_raised(child, name):
    assert isinstance(child.call(Call(name)), Raised)


def test_an_answer_that_cannot_be_pickled_is_raised(child):
    assert isinstance(child.call(Call("threading:Lock")), Raised)


def test_stray_prints_do_not_reach_the_protocol(child, planted, capfd):
    text = "\x00R\xff nonsense " * 1000
    assert child.call(planted("chatter", text)) == Returned(len(text))
    assert child.call(planted("double", 4)) == Returned(8)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("name", ["babble", "close_pipes"])
def test_damage_to_the_pipes_counts_as_a_crash(child, planted, name):
    replies = list(child.stream([planted(name), planted("double", 1)]))
    assert isinstance(replies[0], Crashed)
    assert replies[1] == Returned(2)


def test_a_forked_process_left_behind_does_not_hide_the_death(planted):
    with Child(Limits(timeout_s=20)) as child:
        begin = time.monotonic()
        replies = list(child.stream([planted("fork_and_die"), planted("double", 1)]))
        assert time.monotonic() - begin < 5
    assert replies == [Crashed("exited with status 3"), Returned(2)]


def test_death_between_calls_is_nobodys_fault(child, planted):
    pid = child.call(planted("process_id")).value
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not running(pid))
    assert child.call(planted("double", 1)) == Returned(2)


def test_an_abandoned_stream_does_not_mix_up_answers(child, planted):
    stream = child.stream(planted("double", n) for n in range(10))
    next(stream)
    stream.close()
    assert child.call(planted("double", 50)) == Returned(100)


def test_an_import_that_kills_the_process_is_an_error_of_ours(child, planted):
    with pytest.raises(ChildError, match="status 9"):
        child.call(Call("planted_crash_on_import:f"))
    assert child.call(planted("double", 1)) == Returned(2)


def test_a_child_that_cannot_start_is_an_error(monkeypatch, planted):
    monkeypatch.setattr(sys, "executable", shutil.which("false"))
    with Child() as child, pytest.raises(ChildError, match="exited with status 1"):
        child.call(planted("double", 1))


def test_environment_is_set_for_honest_timing(monkeypatch, planted):
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
    monkeypatch.setenv("OPENBLAS_L2_SIZE", "1")
    monkeypatch.setenv("OMP_NUM_THREADS", "8")
    with Child(Limits(environment={"MKL_NUM_THREADS": "2", "EXTRA": "yes"})) as child:
        names = ["OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "EXTRA"]
        values = [reply.value for reply in child.stream(planted("variable", name) for name in names)]
    assert values == [None, None, "1", "2", "yes"]
    with Child(Limits(threads=3)) as child:
        assert child.call(planted("variable", "OMP_NUM_THREADS")) == Returned("3")


@linux
def test_pinning(planted):
    core = timing_core()
    with Child(Limits(core=core)) as child:
        assert child.call(planted("affinity")) == Returned({core})
    with Child(Limits(core=core, shared_core=True)) as child:
        assert child.call(planted("affinity")) == Returned(os.sched_getaffinity(0))


def test_waiting_for_the_core_does_not_count(child, planted):
    child.call(planted("double", 1))
    replies = []
    with core_lock(4711):
        caller = threading.Thread(target=lambda: replies.append(child.call(planted("lock_core", 4711, 0.01))))
        caller.start()
        caller.join(0.6)
        assert caller.is_alive()
    caller.join(5)
    assert replies == [Returned(4711)]


def test_a_time_out_kills_grandchildren(child, planted, tmp_path):
    assert child.call(planted("spawn_sleeper", str(tmp_path / "pids"))) == TimedOut(0.3)
    pids = (tmp_path / "pids").read_text().split()
    wait_until(lambda: not any(map(running, pids)))


@linux
def test_the_child_dies_with_its_parent_even_while_it_hangs(planted, tmp_path):
    pids = tmp_path / "pids"
    program = (
        "import sys; from irgym.core.cost import Call; from irgym.measure.child import Child\n"
        "Child().call(Call('planted:spawn_sleeper', (sys.argv[1],)))"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    with subprocess.Popen([sys.executable, "-c", program, str(pids)], env=environment) as parent:
        wait_until(lambda: pids.exists() and len(pids.read_text().split()) == 2)
        parent.kill()
    wait_until(lambda: not any(map(running, pids.read_text().split())))


def test_packed_calls_have_packed_answers(child, planted):
    calls = [planted("double", 1), planted("fail", "x"), planted("leave", 3), planted("double", 2)]
    answers = list(child.exchange(map(pack, calls)))
    assert [type(answer) for answer in answers] == [Packed, Packed, Crashed, Packed]
    assert [type(unpack(answer)) for answer in answers] == [Returned, Raised, Crashed, Returned]


def test_another_thread_may_interrupt(planted):
    with Child(Limits(timeout_s=30)) as child:
        child.interrupt()  # there is nothing to interrupt yet
        assert child.call(planted("double", 1)) == Returned(2)
        timer = threading.Timer(0.2, child.interrupt)
        timer.start()
        assert isinstance(child.call(planted("native_hang")), OutOfMemory | Crashed)
        timer.join()
        assert child.call(planted("double", 2)) == Returned(4)


def test_closing_ends_the_process(planted):
    child = Child()
    pid = child.call(planted("process_id")).value
    child.close()
    assert not running(pid)
    child.close()


def test_no_descriptors_leak(child, planted):
    child.call(planted("double", 1))
    before = len(list(Path("/dev/fd").iterdir()))
    for _ in range(3):
        child.call(planted("leave", 1))
    child.call(planted("double", 1))
    assert len(list(Path("/dev/fd").iterdir())) == before
