import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from irgym.base.errors import StorageError
from irgym.base.files import check_distinct, check_writable, lock_for, write_file, write_files

NOBODY = 65534
ROOT = os.geteuid() == 0


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_new_file_has_the_permissions_of_any_new_file(tmp_path):
    before = os.umask(0o027)
    try:
        write_file(tmp_path / "a", b"x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o640
    assert names(tmp_path) == ["a"]


def test_a_replaced_file_hands_on_its_permissions(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    path.chmod(0o604)
    inode = path.stat().st_ino
    write_file(path, b"new")
    assert path.read_bytes() == b"new" and path.stat().st_ino != inode
    assert stat.S_IMODE(path.stat().st_mode) == 0o604


@pytest.mark.skipif(not ROOT, reason="only root can give files away")
def test_a_replaced_file_hands_on_its_owner(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    os.chown(path, NOBODY, NOBODY)
    write_file(path, b"new")
    assert (path.stat().st_uid, path.stat().st_gid) == (NOBODY, NOBODY)


def test_a_write_protected_file_stays(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    path.chmod(0o444)
    for attempt in (lambda: write_file(path, b"new"), lambda: check_writable(path)):
        with pytest.raises(StorageError, match="write-protected"):
            attempt()
    assert path.read_bytes() == b"old" and names(tmp_path) == ["a"]


def test_links_are_followed_and_stay(tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to("there/file")
    for content in (b"made", b"replaced"):
        write_file(tmp_path / "link", content)
        assert (tmp_path / "link").is_symlink() and (tmp_path / "there" / "file").read_bytes() == content
    assert names(tmp_path / "there") == ["file"]


def test_links_in_a_circle_are_one_sentence(tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    for attempt in (lambda: write_file(tmp_path / "a", b""), lambda: check_writable(tmp_path / "a")):
        with pytest.raises(StorageError, match=r"choose an(other place| existing folder)"):
            attempt()


@pytest.mark.parametrize("direct", [True, False])
def test_a_device_is_written_to(tmp_path, direct):
    link = tmp_path / "null"
    link.symlink_to("/dev/null")
    path = Path("/dev/null") if direct else link
    check_writable(path)
    write_file(path, b"x")
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode) and link.is_symlink()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs Linux's /dev/full")
def test_a_full_device_is_one_sentence_and_nothing_else_is_replaced(tmp_path):
    with pytest.raises(StorageError, match=r"cannot write .* \(No space left on device\): free some space"):
        write_files({tmp_path / "a": b"x", Path("/dev/full"): b"x"})
    assert names(tmp_path) == []


def test_a_fifo_is_written_to(tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    read = []
    reader = threading.Thread(target=lambda: read.append(fifo.read_bytes()))
    check_writable(fifo)  # waits for no reader
    reader.start()
    write_file(fifo, b"through the pipe")
    reader.join(10)
    assert read == [b"through the pipe"] and stat.S_ISFIFO(fifo.stat().st_mode)


def test_standard_output_in_a_file_goes_on_after_what_was_printed(tmp_path):
    script = (
        "from pathlib import Path; from irgym.base.files import write_file; print('before');"
        "write_file(Path('/dev/stdout'), b'middle\\n'); print('after')"
    )
    with (tmp_path / "out").open("wb") as out:
        subprocess.run([sys.executable, "-c", script], stdout=out, check=True)
    assert (tmp_path / "out").read_text() == "before\nmiddle\nafter\n"


def test_descriptors_that_are_closed_are_one_sentence():
    with pytest.raises(StorageError, match="Bad file descriptor"):
        check_writable(Path("/dev/fd/7777"))


def test_names_too_long_and_other_impossible_places(tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    for path, words in (
        (tmp_path / ("n" * 300), "File name too long"),
        (tmp_path / "file" / "a", "Not a directory"),
        (tmp_path / "no" / "a", "is no folder|No such file"),
        (tmp_path / "folder", "it is a folder|Is a directory"),
        (Path("/proc/a"), "No such file"),  # where not even root may write
    ):
        for attempt in (lambda path=path: write_file(path, b""), lambda path=path: check_writable(path)):
            with pytest.raises(StorageError, match=words):
                attempt()
    assert names(tmp_path) == ["file", "folder"]


def test_the_longest_name_can_be_written(tmp_path):
    path = tmp_path / ("n" * 255)
    check_writable(path)
    write_file(path, b"x")
    assert names(tmp_path) == [path.name]


def test_a_folder_is_synced_after_the_names_in_it_changed(tmp_path, monkeypatch):
    events = []
    fsync, replace = os.fsync, Path.replace
    monkeypatch.setattr(
        os, "fsync", lambda fd: events.append(Path(f"/proc/self/fd/{fd}").readlink().name) or fsync(fd)
    )
    monkeypatch.setattr(Path, "replace", lambda a, b: events.append("replace") or replace(a, b))
    write_file(tmp_path / "a", b"x")
    assert events[0].startswith(".irgym-") and events[1:] == ["replace", tmp_path.name]


def test_an_interrupt_leaves_nothing_behind(tmp_path, monkeypatch):
    def interrupted(descriptor):
        raise KeyboardInterrupt

    monkeypatch.setattr("os.fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_file(tmp_path / "a", b"x")
    assert names(tmp_path) == []


@pytest.mark.parametrize("kind", ["folder", "file"])
def test_a_second_process_is_told_who_has_the_lock(tmp_path, kind):
    path = tmp_path if kind == "folder" else tmp_path / "a.json"
    script = (
        "import sys; from pathlib import Path; from irgym.base.files import lock_for\n"
        "with lock_for(Path(sys.argv[1])): print('locked', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", script, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as owner:
        assert owner.stdout and owner.stdout.readline() == b"locked\n"
        with pytest.raises(StorageError, match=f"process {owner.pid} is writing to .*: wait"), lock_for(path):
            pass
        owner.kill()
    assert len(names(tmp_path)) == 1  # the lock file of the dead
    with lock_for(path):
        assert len(names(tmp_path)) == 1
    assert names(tmp_path) == []


def test_errors_under_a_lock_are_those_of_the_work(tmp_path):
    with pytest.raises(FileNotFoundError), lock_for(tmp_path):
        (tmp_path / "missing").read_text()
    assert names(tmp_path) == []


def test_locking_a_folder_sweeps_up_what_the_dead_left(tmp_path):
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    for name in (f".irgym-{dead.pid}-00", f".irgym-{os.getpid()}-00", ".irgym-other"):
        (tmp_path / name).write_text("")
    with lock_for(tmp_path):
        pass
    assert names(tmp_path) == sorted([f".irgym-{os.getpid()}-00", ".irgym-other"])


def test_devices_need_no_lock():
    with lock_for(Path("/dev/null")), lock_for(Path("/dev/null")):
        pass


def test_a_kill_between_the_renames_leaves_no_copy_behind(tmp_path):
    path, previous = tmp_path / "a", tmp_path / "previous"
    path.write_bytes(b"first")
    os.link(
        path, previous
    )  # as a kill leaves them once the second name is made, before the new file is there
    write_file(path, b"second", previous)
    assert (path.read_bytes(), previous.read_bytes()) == (b"second", b"first")
    assert names(tmp_path) == ["a", "previous"]


def test_room_is_asked_for_before_the_work(tmp_path):
    check_writable(tmp_path / "a", room=1 << 20)
    with pytest.raises(StorageError, match="free some space"):
        check_writable(tmp_path / "a", room=1 << 60)
    assert not names(tmp_path)


def test_each_result_needs_a_file_of_its_own(tmp_path):
    (tmp_path / "link").symlink_to("a")
    check_distinct({"--json": tmp_path / "a", "--export": tmp_path / "b"})
    check_distinct({"--json": Path("/dev/null"), "--export": Path("/dev/null")})
    with pytest.raises(StorageError, match="--json and --export both name"):
        check_distinct({"--json": tmp_path / "a", "--export": tmp_path / "link"})
