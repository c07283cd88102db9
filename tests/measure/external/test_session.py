import gc
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from irgym.base.errors import BackendError
from irgym.measure.external.protocol import Answered, Garbled, LineLimits
from irgym.measure.external.session import LineSession
from irgym.measure.isolation.protocol import Crashed, TimedOut

linux = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")

SCRIPT = Path(__file__).parents[2] / "toys" / "liner.py"
LIMITS = LineLimits(timeout_s=20.0, line_bytes=1 << 18, answer_bytes=1 << 20, failures=2)
Open = Callable[..., LineSession]


@pytest.fixture
def opened() -> Iterator[Open]:
    """Sessions with the stand-in, closed afterwards."""
    sessions: list[LineSession] = []

    def open_session(*arguments: str, limits: LineLimits = LIMITS, **options) -> LineSession:
        command = (sys.executable, str(SCRIPT), *arguments)
        settings = {"name": "the liner", "remedy": "mend it", "limits": limits, **options}
        sessions.append(LineSession(command, lambda line: line.startswith("done"), **settings))
        return sessions[-1]

    yield open_session
    for session in sessions:
        session.close()


def process_of(session: LineSession) -> int:
    reply = session.request("process")
    assert isinstance(reply, Answered)
    return int(reply.lines[-1].split()[1])


def running(pid: int) -> bool:
    """Say whether a process exists and is not a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_until(condition: Callable[[], bool], seconds: float = 10.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def echoes(session: LineSession, word: str = "hello") -> bool:
    return session.request(f"echo {word}") == Answered((f"you said {word}", f"done {word}"))


def test_an_answer_is_the_lines_up_to_the_one_that_ends_it(opened: Open):
    session = opened()
    assert echoes(session)
    assert session.request("lines 3") == Answered(("line 0", "line 1", "line 2", "done 0"))
    assert session.request("words", ends=lambda line: line == "some words") == Answered(("some words",))
    assert session.request("crlf") == Answered(("one", "done 0"))
    assert echoes(session, "\u00e9 \u4e2d")


def test_the_process_starts_on_the_first_request_and_stays(opened: Open):
    session = opened()
    first = process_of(session)
    assert first == process_of(session) != os.getpid()


def test_a_request_is_one_line(opened: Open):
    session = opened()
    for line in ("echo a\necho b", "echo a\r"):
        with pytest.raises(ValueError, match="one line"):
            session.request(line)


def test_large_requests_and_answers_do_not_deadlock(opened: Open):
    session = opened(limits=replace(LIMITS, answer_bytes=1 << 24))
    assert session.request(f"length {'x' * 3_000_000}") == Answered(("done 3000000",))
    reply = session.request("lines 200000")
    assert isinstance(reply, Answered) and len(reply.lines) == 200_001


@pytest.mark.parametrize(
    ("request_line", "reply"),
    [
        ("die 3", Crashed("exited with status 3; it printed: the last words")),
        ("die 0", Crashed("exited with status 0; it printed: the last words")),
        ("abort", Crashed("killed by SIGABRT")),
        ("deaf", Crashed("it closed its output")),
        ("orphan", Crashed("exited with status 3")),
        ("bytes", Garbled(r"it wrote a line that is no UTF-8: b'\xff\xfe\x00garbage'")),
        ("endless-line", Garbled("it wrote a line of more than 262144 bytes")),
        ("endless-lines", Garbled("it wrote more than 1048576 bytes and did not end its answer")),
    ],
)
def test_a_failure_costs_that_request_only(opened: Open, request_line: str, reply: object):
    session = opened()
    before = process_of(session)
    assert session.request(request_line) == reply
    assert process_of(session) != before
    assert not running(before)


def test_a_late_answer_is_not_taken_for_the_next(opened: Open):
    session = opened()
    before = process_of(session)
    reply = session.request("sleep 1.5", timeout_s=0.3)
    assert isinstance(reply, TimedOut) and reply.seconds == 0.3
    time.sleep(1.5)
    assert echoes(session)
    assert process_of(session) != before


def test_a_missing_end_is_late(opened: Open):
    session = opened()
    reply = session.request("lines 1", ends=lambda line: False, timeout_s=0.3)
    assert isinstance(reply, TimedOut)


def test_chatter_between_requests_is_dropped(opened: Open):
    session = opened()
    before = process_of(session)
    assert session.request("chatter") == Answered(("done chatter",))
    time.sleep(0.2)
    assert echoes(session)
    assert process_of(session) == before


@pytest.mark.parametrize("request_line", ["twice", "unfinished"])
def test_an_answer_that_nobody_asked_for_is_not_taken_for_the_next(opened: Open, request_line: str):
    session = opened()
    before = process_of(session)
    assert isinstance(session.request(request_line), Answered)
    time.sleep(0.2)
    assert echoes(session)
    assert process_of(session) != before


def test_an_end_between_requests_is_nobodys_fault(opened: Open):
    session = opened()
    assert session.request("leave") == Answered(("done leave",))
    time.sleep(0.3)
    assert echoes(session)


def test_complaints_are_drained(opened: Open):
    session = opened()
    assert session.request("complain") == Answered(("done complain",))
    reply = session.request("die 1")
    assert isinstance(reply, Crashed) and reply.detail.endswith("complaint the last words")
    assert len(reply.detail) < 3000


def test_failures_in_a_row_are_an_error_until_it_is_closed(opened: Open):
    session = opened()
    for _ in range(LIMITS.failures):
        assert isinstance(session.request("die 1"), Crashed)
    assert echoes(session)
    for _ in range(LIMITS.failures):
        assert isinstance(session.request("die 1"), Crashed)
    with pytest.raises(BackendError, match=r"the liner failed 3 times in a row \(exited with status 1; it"):
        session.request("die 1")
    with pytest.raises(BackendError, match="the liner failed 3 times in a row: mend it"):
        session.request("echo hello")
    session.close()
    assert echoes(session)


def test_a_process_for_each_request_is_an_error(opened: Open):
    session = opened()
    for _ in range(LIMITS.failures + 1):
        assert session.request("leave") == Answered(("done leave",))
        time.sleep(0.3)
    with pytest.raises(BackendError, match="ended or spoke unasked after each of 3 requests: mend it"):
        session.request("leave")


def test_a_program_that_cannot_be_started_is_named(tmp_path: Path):
    for command in ([str(tmp_path / "missing")], [str(tmp_path)]):
        session = LineSession(command, bool, name="the liner", remedy="set LINER")
        with pytest.raises(BackendError, match=r"cannot be started \(.*: (No such|Perm).*\): set LINER"):
            session.request("echo hello")


def ready(line: str) -> bool:
    return line == "ready"


def test_a_greeting_is_waited_for(opened: Open):
    assert echoes(opened("greets", greeting=ready))
    session = opened("dies", greeting=ready)
    with pytest.raises(BackendError, match=r"did not start \(exited with status 127; it printed: cannot"):
        session.request("echo hello")
    session = opened("mute", greeting=ready, limits=replace(LIMITS, start_s=0.3))
    with pytest.raises(BackendError, match=r"did not start \(it did not answer within 0.3 s\)"):
        session.request("echo hello")


def test_starts_that_fail_are_bounded(opened: Open):
    session = opened("dies", greeting=ready)
    for _ in range(LIMITS.failures + 1):
        with pytest.raises(BackendError, match="did not start"):
            session.request("echo hello")
    with pytest.raises(BackendError, match="failed 3 times in a row"):
        session.request("echo hello")


def test_environment_and_folder(opened: Open, tmp_path: Path):
    session = opened(folder=tmp_path, limits=replace(LIMITS, environment={"LINER": "mine"}, threads=2))
    assert session.request("environment LINER") == Answered((f"done mine {tmp_path}",))
    assert session.request("environment OMP_NUM_THREADS") == Answered((f"done 2 {tmp_path}",))


def test_it_is_told_to_end(opened: Open, tmp_path: Path):
    witness = tmp_path / "witness"
    session = opened("witness", str(witness), farewell="quit")
    pid = process_of(session)
    session.close()
    assert witness.read_text() == "quit" and not running(pid)


def test_a_stubborn_process_and_its_children_are_killed(opened: Open):
    session = opened("stubborn", limits=replace(LIMITS, end_s=0.2))
    reply = session.request("grandchild")
    assert isinstance(reply, Answered)
    grandchild, pid = int(reply.lines[-1].split()[1]), process_of(session)
    assert running(grandchild) and running(pid)
    session.close()
    wait_until(lambda: not running(grandchild) and not running(pid))


def test_children_of_an_obedient_process_end_too(opened: Open):
    session = opened()
    reply = session.request("grandchild")
    assert isinstance(reply, Answered)
    session.close()
    wait_until(lambda: not running(int(reply.lines[-1].split()[1])))


def test_a_session_that_is_let_go_ends_its_process(opened: Open):
    command = (sys.executable, str(SCRIPT), "stubborn")
    session = LineSession(command, lambda line: line.startswith("done"), name="it", remedy="mend it")
    pid = process_of(session)
    del session
    gc.collect()
    wait_until(lambda: not running(pid))


def test_an_interrupt_leaves_no_answer_behind(opened: Open):
    session = opened()
    pid = process_of(session)
    threading.Timer(0.5, signal.raise_signal, (signal.SIGINT,)).start()
    with pytest.raises(KeyboardInterrupt):
        session.request("sleep 5")
    assert not running(pid)
    assert echoes(session)


@linux
def test_it_dies_with_this_process(tmp_path: Path):
    program = (
        "import sys, time\n"
        "from irgym.measure.external.session import LineSession\n"
        "session = LineSession(sys.argv[1:], lambda line: line.startswith('done'), name='it', remedy='-')\n"
        "print(session.request('process').lines[-1], flush=True)\n"
        "time.sleep(60)\n"
    )
    command = [sys.executable, "-c", program, sys.executable, str(SCRIPT), "stubborn"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline().split()[1])
        assert running(pid)
        parent.kill()
    wait_until(lambda: not running(pid))
