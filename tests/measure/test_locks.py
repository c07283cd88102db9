import logging
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from irgym.base.errors import StorageError
from irgym.measure import locks
from irgym.measure.isolation.child import Child, Limits
from irgym.measure.locks import holder_of, lock_file
from irgym.measure.machine import SLOT, Slot, core_lock

linux = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")

HOLD = """
import sys, time
from irgym.measure import locks
from irgym.measure.machine import core_lock
locks.FOLDERS = (sys.argv[1],)
with core_lock(7):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture(autouse=True)
def own_locks(monkeypatch, tmp_path):
    folder = tmp_path / "locks"
    folder.mkdir()
    folder.chmod(0o777)
    monkeypatch.setattr(locks, "FOLDERS", (str(folder),))
    return folder


@contextmanager
def another_holder(folder):
    """Run a process that holds the lock of core 7."""
    command = [sys.executable, "-c", HOLD, str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as holder:
        try:
            assert holder.stdout.readline() == b"held\n"
            yield holder
        finally:
            holder.kill()


def test_a_core_lock_excludes_other_processes_until_they_die(own_locks):
    notices = []
    token = SLOT.set(Slot((7,), False, lambda lock: notices.append((lock, time.monotonic()))))
    with another_holder(own_locks) as other:
        with core_lock(8):
            assert notices == []
        killer = subprocess.Popen(["sh", "-c", f"sleep 0.2; kill -9 {other.pid}"])
        with core_lock(7):
            pass
        killer.wait()
    SLOT.reset(token)
    [(first, begin), (second, end)] = notices
    assert (first, second) == (lock_file(7), None)
    assert end - begin > 0.1


def test_the_place_does_not_depend_on_the_folder_for_temporary_files(monkeypatch):
    monkeypatch.undo()
    program = "from irgym.measure.locks import lock_file; print(lock_file(3))"
    places = {
        subprocess.check_output([sys.executable, "-c", program], env={**os.environ, "TMPDIR": folder})
        for folder in ("/tmp", "/var/tmp", str(Path.cwd()))
    }
    assert len(places) == 1


def test_a_folder_in_which_not_everybody_may_write_is_passed_over(monkeypatch, tmp_path):
    folders = tmp_path / "absent", tmp_path / "closed", tmp_path / "open"
    for folder in folders[1:]:
        folder.mkdir()
    folders[1].chmod(0o755)
    folders[2].chmod(0o777)
    monkeypatch.setattr(locks, "FOLDERS", tuple(map(str, folders)))
    assert lock_file(3).parent == folders[2]


def _link(path):
    path.symlink_to(path.with_name("elsewhere"))


@pytest.mark.parametrize("obstacle", [os.mkfifo, Path.mkdir, _link])
def test_a_path_that_cannot_be_a_lock_is_refused_at_once(own_locks, planted, obstacle):
    obstacle(own_locks / "irgym-core-7.lock")
    begin = time.monotonic()
    with pytest.raises(StorageError, match="remove it"), core_lock(7):
        pass
    assert time.monotonic() - begin < 1
    with Child(Limits(timeout_s=2)) as child:
        reply = child.call(planted("lock_core_in", str(own_locks), 7, 0.0))
    assert isinstance(reply.user_error, StorageError)


def test_all_users_may_open_a_lock_file_whatever_the_mask(own_locks):
    before = os.umask(0o077)
    try:
        with core_lock(7):
            pass
    finally:
        os.umask(before)
    assert lock_file(7).stat().st_mode & 0o777 == 0o644


def test_a_lock_file_that_was_removed_meanwhile_excludes_nobody(own_locks):
    with core_lock(7):
        first = lock_file(7).stat().st_ino
        lock_file(7).rename(own_locks / "kept")
        descriptor = locks.try_lock(lock_file(7))
        assert lock_file(7).stat().st_ino != first
        os.close(descriptor)
        assert locks.try_lock(own_locks / "kept") is None


@linux
def test_a_waiter_is_told_once_who_holds_the_lock(own_locks, monkeypatch, caplog, planted):
    monkeypatch.setattr(locks, "SAY_S", 0.3)
    replies = []
    with another_holder(own_locks) as other, Child(Limits(timeout_s=5)) as child:
        call = planted("lock_core_in", str(own_locks), 7, 0.0)
        caller = threading.Thread(target=lambda: replies.append(child.call(call)))
        caller.start()
        deadline = time.monotonic() + 20
        while not caplog.records:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        caller.join(0.5)  # it is not logged again
        assert caller.is_alive()
        other.kill()
        caller.join()
    assert replies[0].value == 7
    [record] = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert f"process {other.pid} ({sys.executable} -c" in record.getMessage()


@linux
def test_a_worker_is_named_by_its_parent(own_locks, planted):
    replies = []
    with Child(Limits(timeout_s=5)) as child:
        calls = [planted("process_id"), planted("lock_core_in", str(own_locks), 7, 0.5)]
        caller = threading.Thread(target=lambda: replies.extend(child.stream(calls)))
        caller.start()
        deadline = time.monotonic() + 10
        while not lock_file(7).exists() or (holder := holder_of(lock_file(7))) is None:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        caller.join()
    assert holder.pid == replies[0].value
    assert f"of process {os.getpid()} (" in holder.text


@linux
@pytest.mark.parametrize("isolated", [True, False])
def test_a_holder_that_is_stopped_does_not_block_for_ever(own_locks, monkeypatch, planted, isolated):
    monkeypatch.setattr(locks, "SAY_S", 0.1)
    monkeypatch.setattr(locks, "STOPPED_S", 0.5)
    with another_holder(own_locks) as other:
        other.send_signal(signal.SIGSTOP)
        with pytest.raises(StorageError, match=f"kill -CONT {other.pid}"), Child() as child:
            if isolated:
                child.call(planted("lock_core_in", str(own_locks), 7, 0.0))
            else:
                with core_lock(7):
                    pass


@linux
def test_a_lock_that_is_never_free_is_one_sentence(own_locks, monkeypatch, planted):
    monkeypatch.setattr(locks, "SAY_S", 0.1)
    monkeypatch.setattr(locks, "PATIENCE_S", 0.5)
    with (
        another_holder(own_locks) as other,
        pytest.raises(StorageError, match=f"process {other.pid} "),
        Child() as child,
    ):
        child.call(planted("lock_core_in", str(own_locks), 7, 0.0))
