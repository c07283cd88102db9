import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from irgym.base.errors import BackendError
from irgym.base.interrupts import CHILD
from irgym.core.cost import Call
from irgym.measure.isolation.child import (
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
    """Say whether a process exists and is not a zombie."""
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


def test_a_call_tells_how_it_gets_on(planted):
    told: list[str] = []
    with Child(told=told.append) as child:
        assert child.call(planted("tells", 3)) == Returned(3)
        assert told == ["step 0", "step 1", "step 2"]
        assert child.call(planted("double", 21)) == Returned(42) and len(told) == 3
    with Child() as deaf:
        assert deaf.call(planted("tells", 3)) == Returned(3)


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
    # Together they exceed the limit, but none alone.
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


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
def test_a_call_that_was_killed_from_outside_runs_again(planted, tmp_path, number):
    notes = tmp_path / "notes"
    with Child(Limits(timeout_s=5)) as child:
        child.call(planted("double", 1))
        killer = threading.Thread(target=lambda: os.kill(first_note(notes), number))
        killer.start()
        calls = [planted("note_and_nap", str(notes), 0.3), planted("double", 2)]
        assert list(child.stream(calls)) == [Returned(0.3), Returned(4)]
        killer.join()
    assert len(set(notes.read_text().split())) == 2


def first_note(notes):
    wait_until(lambda: notes.exists() and notes.read_text().endswith("\n"))
    return int(notes.read_text().split()[0])


@pytest.mark.parametrize(
    ("number", "kind"), [(signal.SIGKILL, OutOfMemory), (signal.SIGTERM, Crashed), (signal.SIGXCPU, Crashed)]
)
def test_a_call_that_is_killed_again_and_again_is_not_run_a_third_time(
    child, planted, tmp_path, number, kind
):
    notes = tmp_path / "notes"
    reply, after = child.stream([planted("note_and_end_by", str(notes), int(number)), planted("double", 1)])
    assert isinstance(reply, kind)
    assert reply.doubtful
    assert after == Returned(2)
    assert len(notes.read_text().split()) == 2


def test_a_fault_of_its_own_runs_once(child, planted, tmp_path):
    notes = tmp_path / "notes"
    reply = child.call(planted("note_and_end_by", str(notes), int(signal.SIGSEGV)))
    assert isinstance(reply, Crashed)
    assert not reply.doubtful
    assert len(notes.read_text().split()) == 1


def test_rounds_that_are_taken_again_do_not_add_up_to_a_time_out(planted):
    with Child(Limits(timeout_s=1.6)) as child:
        started = time.monotonic()
        assert child.call(planted("compare_naps", 0.08)) == Returned(3)
        assert time.monotonic() - started > 1.6


def test_a_limit_of_the_system_on_processor_time_is_no_lack_of_memory(planted):
    with Child(Limits(timeout_s=20)) as child:
        reply = child.call(planted("burn"))
    assert isinstance(reply, Crashed)
    assert "SIGXCPU" in reply.detail


@linux
def test_memory_of_earlier_calls_does_not_count_for_a_call(planted):
    calls = [planted("hoard", 150 << 20), planted("hold", 200 << 20), planted("hold", 300 << 20)]
    with Child(Limits(timeout_s=5, memory_bytes=256 << 20)) as child:
        *fine, too_much = child.stream(calls)
    assert fine == [Returned(150 << 20), Returned(200 << 20)]
    assert isinstance(too_much, OutOfMemory)
    assert not too_much.doubtful


def test_a_call_that_sleeps_gets_a_second_chance_and_one_that_computes_does_not(child, planted, tmp_path):
    begin = time.monotonic()
    notes = tmp_path / "sleeps", tmp_path / "computes"
    calls = [planted("note_and_nap", str(notes[0]), 60), planted("note_and_hang", str(notes[1]))]
    assert list(child.stream(calls)) == [TimedOut(0.3, doubtful=True), TimedOut(0.3)]
    assert [len(path.read_text().split()) for path in notes] == [2, 1]
    assert time.monotonic() - begin < 10


@linux
def test_time_in_which_the_process_is_stopped_does_not_count(planted, tmp_path):
    notes = tmp_path / "notes"

    def stop():
        pid = first_note(notes)
        os.kill(pid, signal.SIGSTOP)
        time.sleep(1.2)
        os.kill(pid, signal.SIGCONT)

    with Child(Limits(timeout_s=0.5)) as child:
        child.call(planted("double", 1))
        stopper = threading.Thread(target=stop)
        stopper.start()
        assert child.call(planted("note_and_nap", str(notes), 0.3)) == Returned(0.3)
        stopper.join()
    assert len(notes.read_text().split()) == 1


@linux
def test_time_in_which_everything_is_stopped_does_not_count(tmp_path):
    notes = tmp_path / "notes"
    program = (
        "import sys; from irgym.core.cost import Call\n"
        "from irgym.measure.isolation.child import Child, Limits\n"
        "print(Child(Limits(timeout_s=0.6)).call(Call('planted:note_and_nap', (sys.argv[1], 0.4))))"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])}
    command = [sys.executable, "-c", program, str(notes)]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as parent:
        both = first_note(notes), parent.pid
        for number in (signal.SIGSTOP, signal.SIGCONT):
            for pid in both:
                os.kill(pid, number)
            time.sleep(1.2)
        assert parent.communicate()[0] == "Returned(value=0.4)\n"
    assert len(notes.read_text().split()) == 1


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
def test_a_time_out_ends_many_processes(child, planted):
    group = child.call(planted("process_id")).value
    assert isinstance(child.call(planted("fork_bomb", 5)), TimedOut)
    wait_until(lambda: not any(map(running, members_of(group))))


def members_of(group):
    members = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if os.getpgid(int(folder.name)) == group:
                members.append(folder.name)
    return members


@linux
def test_the_child_dies_with_its_parent_even_while_it_hangs(planted, tmp_path):
    pids = tmp_path / "pids"
    program = (
        "import sys; from irgym.core.cost import Call; from irgym.measure.isolation.child import Child\n"
        "Child().call(Call('planted:spawn_sleeper', (sys.argv[1],)))"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    with subprocess.Popen([sys.executable, "-c", program, str(pids)], env=environment) as parent:
        wait_until(lambda: pids.exists() and len(pids.read_text().split()) == 2)
        parent.kill()
    wait_until(lambda: not any(map(running, pids.read_text().split())))


@linux
def test_a_child_that_starts_after_its_parent_died_ends_before_it_imports():
    requests, ask = os.pipe()
    answer, answers = os.pipe()
    lifeline, held = os.pipe()
    os.close(held)  # the parent is dead
    theirs = (requests, answers, lifeline)
    command = [sys.executable, "-P", "-m", CHILD, *map(str, theirs)]
    process = subprocess.Popen(command, pass_fds=theirs, start_new_session=True)
    try:
        assert process.wait(30) == -signal.SIGKILL  # it would wait for a request otherwise
    finally:
        process.kill()
        for descriptor in (*theirs, ask, answer):
            os.close(descriptor)


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
        assert child.call(planted("native_hang")) == Crashed("it was interrupted")
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


@pytest.mark.parametrize("moment", ["_reap", "_close", "ends_within"])
def test_a_second_close_ends_what_an_interrupt_left(moment, child, planted, monkeypatch):
    assert child.call(planted("double", 21)) == Returned(42)
    process = child._process
    original, calls = getattr(type(process), moment), []

    def interrupted(self, *arguments):
        calls.append(None)
        result = original(self, *arguments)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return result

    monkeypatch.setattr(type(process), moment, interrupted)
    with pytest.raises(KeyboardInterrupt):
        child.close()
    child.close()
    assert not process.alive() and child._process is None
