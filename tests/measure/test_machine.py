import fcntl
import os
import subprocess
import sys
import threading
from dataclasses import fields, replace

import pytest

from irgym.measure import locks, machine
from irgym.measure.machine import (
    SLOT,
    Load,
    Slot,
    cache_dir,
    core_kind,
    core_lock,
    fingerprint,
    load,
    pin,
    timing_core,
    timing_cores,
    timing_slot,
)

linux = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")


@pytest.fixture(autouse=True)
def own_locks(monkeypatch, tmp_path):
    monkeypatch.setattr(locks, "FOLDERS", (str(tmp_path),))
    return tmp_path


def test_the_fingerprint_is_the_same_in_another_process():
    program = "from irgym.measure.machine import fingerprint; print(fingerprint().key)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == fingerprint().key


def test_every_part_of_the_machine_is_in_its_key():
    here = fingerprint()
    keys = {here.key}
    for part in fields(here):
        value = getattr(here, part.name)
        other = (
            value + 1
            if isinstance(value, int)
            else frozenset({"x"})
            if part.name == "features"
            else value + "x"
        )
        keys.add(replace(here, **{part.name: other}).key)
    assert len(keys) == 1 + len(fields(here))
    assert len(here.key) < 32


def test_the_machine_as_text():
    here = replace(
        fingerprint(), model="Model", features=frozenset({"avx512f", "avx2"}), cores=2, memory_gib=24
    )
    assert here.text() == f"Model, AVX-512, 2 cores, 24 GiB, {here.system}"


def test_arm_is_understood(monkeypatch, tmp_path):
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text(
        "Features : fp asimd\nCPU implementer : 0x41\nCPU architecture: 8\nCPU part : 0xd0c\n\n"
    )
    monkeypatch.setattr(machine, "Path", lambda _: cpuinfo)
    vendor, _, family, features = machine._cpu_linux()
    assert (vendor, family, features) == ("0x41", "8-0xd0c", frozenset({"fp", "asimd"}))


def test_kinds_of_cores(tmp_path):
    assert core_kind(None) == core_kind(0, tmp_path) == ""
    for core, capacity in enumerate((1024, 1024, 446)):
        folder = tmp_path / "system" / "cpu" / f"cpu{core}"
        folder.mkdir(parents=True)
        (folder / "cpu_capacity").write_text(f"{capacity}\n")
    assert [core_kind(core, tmp_path) for core in (1, 2)] == ["1024", "446"]
    (folder / "cpu_capacity").write_text("1024\n")
    assert core_kind(2, tmp_path) == ""
    for kind, numbers in (("core", "0-3,8\n"), ("atom", "4-7\n")):
        (tmp_path / f"cpu_{kind}").mkdir()
        (tmp_path / f"cpu_{kind}" / "cpus").write_text(numbers)
    assert [core_kind(core, tmp_path) for core in (3, 4, 8)] == ["core", "atom", "core"]


def test_load():
    now = load(0.01)
    assert 0 <= now.used <= 1
    assert now.cores == os.cpu_count()
    assert Load(0.1, 0.2, 2).text() == "quiet: 20% of 2 cores in use, load average 0.1"
    assert Load(2.5, 0.9, 2).busy


@linux
def test_timing_core_is_one_that_may_be_used():
    assert timing_core() in os.sched_getaffinity(0)


@linux
def test_threads_are_timed_on_the_last_cores_that_may_be_used(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 2, 3, 7})
    assert timing_core() == 7
    assert [timing_cores(7, count) for count in (1, 2, 4, 5)] == [(7,), (3, 7), (0, 2, 3, 7), (0, 2, 3, 7)]
    assert timing_cores(None, 3) == ()


def test_without_affinity_nothing_is_pinned(monkeypatch):
    for name in ("sched_getaffinity", "sched_setaffinity"):
        monkeypatch.delattr(os, name, raising=False)
    assert timing_core() is None
    assert pin({0}) == {0}
    with timing_slot():
        pass


def test_cache_dir(monkeypatch, tmp_path):
    monkeypatch.setenv("IRGYM_CACHE_DIR", str(tmp_path))
    assert cache_dir() == tmp_path
    monkeypatch.delenv("IRGYM_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_dir() == tmp_path / "irgym"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_dir() == tmp_path / ".cache" / "irgym"


def test_a_core_lock_may_be_nested():
    with core_lock(7), core_lock(7), core_lock(8), core_lock(7):
        pass
    with core_lock(7):
        pass


@linux
def test_a_shared_slot_is_pinned_only_while_timing():
    core = timing_core()
    before = os.sched_getaffinity(0)
    token = SLOT.set(Slot((core,), True, lambda waiting: None))
    try:
        with timing_slot(), timing_slot():
            assert os.sched_getaffinity(0) == {core}
        assert os.sched_getaffinity(0) == before
    finally:
        SLOT.reset(token)


def test_all_cores_of_a_slot_are_locked(own_locks):
    token = SLOT.set(Slot((7, 8), False, lambda waiting: None))
    try:
        with timing_slot():
            assert [_locked(own_locks, core) for core in (7, 8)] == [True, True]
        assert [_locked(own_locks, core) for core in (7, 8)] == [False, False]
    finally:
        SLOT.reset(token)


def _locked(folder, core):
    with (folder / f"irgym-core-{core}.lock").open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False


@linux
def test_threads_that_run_already_are_pinned_too():
    go, seen = threading.Event(), []
    thread = threading.Thread(target=lambda: (go.wait(), seen.append(os.sched_getaffinity(0))))
    thread.start()
    before = pin({timing_core()})
    try:
        go.set()
        thread.join()
    finally:
        assert pin(before) == {timing_core()} == seen[0]


@linux
def test_an_unpinned_process_takes_no_lock(own_locks):
    if len(os.sched_getaffinity(0)) > 1:
        with timing_slot():
            assert list(own_locks.iterdir()) == []
