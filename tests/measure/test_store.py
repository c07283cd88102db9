"""Artefacts are found by all that they depend on, intact or not at all, and made once by many processes."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from irgym.base.errors import StorageError
from irgym.measure.store import DIGITS, STEM, Store, content_digest, digest, stem_of

STORE = Store("toys/things", ".bin")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("IRGYM_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def never() -> bytes:
    raise AssertionError("it was made before")


def test_made_values_are_stored(cache: Path):
    assert STORE.find("a") is None and not cache.exists()
    file = STORE.get("a", lambda: b"content")
    assert file.read_bytes() == b"content"
    assert file == cache / "toys" / "things" / f"a-{content_digest(b'content')}.bin"
    assert STORE.get("a", never) == STORE.find("a") == file


def test_names_that_begin_alike_are_apart():
    names = ("a", "a-b", "a-", f"a-{'0' * DIGITS}", "a.", "A")
    files = {name: STORE.get(name, name.encode) for name in names}
    for name, file in files.items():
        assert STORE.get(name, never) == file and file.read_bytes() == name.encode()
    assert Store("toys/things", ".txt").find("a") is None
    assert Store("toys/others", ".bin").find("a") is None


@pytest.mark.parametrize("damage", [b"", b"conten", b"c0ntent", b"content and more"])
def test_damaged_values_are_made_again(damage: bytes):
    file = STORE.get("a", lambda: b"content")
    file.write_bytes(damage)
    assert STORE.find("a") is None and not file.exists()
    file = STORE.get("a", lambda: b"content")
    file.write_bytes(damage)
    assert STORE.put("a", b"content").read_bytes() == b"content"


def test_failed_values_are_not_stored():
    def fails() -> bytes:
        raise OSError("the maker's own")

    with pytest.raises(OSError, match="the maker's own"):
        STORE.get("a", fails)
    assert STORE.find("a") is None
    assert [file.name for file in STORE.folder.iterdir()] == [".lock"]
    assert STORE.get("a", lambda: b"content").read_bytes() == b"content"


def test_incomplete_files_of_dead_processes_go():
    STORE.folder.mkdir(parents=True)
    with subprocess.Popen([sys.executable, "-c", ""]) as dead:
        pass
    part = STORE.folder / f".irgym-{dead.pid}-0"
    part.write_bytes(b"half")
    STORE.get("a", lambda: b"content")
    assert not part.exists()


def test_more_files_go_beside():
    file = STORE.put("a", b"content", {".more": b"more"})
    assert file.with_suffix(".more").read_bytes() == b"more"


def test_a_folder_in_the_way_is_named(cache: Path):
    cache.write_text("")
    for keep in (lambda: STORE.get("a", lambda: b"content"), lambda: STORE.put("a", b"content")):
        with pytest.raises(StorageError, match="cannot make"):
            keep()


def test_an_unreadable_value_is_named():
    file = STORE.put("a", b"content")
    file.unlink()
    file.mkdir()
    for keep in (lambda: STORE.find("a"), lambda: STORE.put("a", b"content")):
        with pytest.raises(StorageError, match=r"cannot read .*IRGYM_CACHE_DIR"):
            keep()


def test_an_unavailable_lock_is_named():
    (STORE.folder / ".lock").mkdir(parents=True)
    with pytest.raises(StorageError, match=r"cannot lock .*IRGYM_CACHE_DIR"):
        STORE.get("a", lambda: b"content")


@given(st.lists(st.text(max_size=4), max_size=4), st.lists(st.text(max_size=4), max_size=4))
def test_digests_tell_parts_apart(left: list[str], right: list[str]):
    assert (digest(*left) == digest(*right)) == (left == right)
    assert digest(*left) == digest(*(part.encode() for part in left))


@given(st.text())
def test_stems_are_names(text: str):
    stem = stem_of(text)
    assert stem.replace("_", "a").isalnum() and len(stem) <= STEM


MAKER = """
import sys, time
from pathlib import Path
from irgym.measure.store import Store

def make():
    with Path(sys.argv[1]).open("a") as made:
        made.write("made\\n")
    time.sleep(0.5)
    return b"content"

print(Store("toys/things", ".bin").get(sys.argv[2], make))
"""


def maker(log: Path, name: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", MAKER, str(log), name]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ)


def test_one_of_many_processes_makes_it(tmp_path: Path):
    makers = [maker(tmp_path / "log", name) for name in ("a", "a", "a", "b")]
    files = [made.communicate()[0].strip() for made in makers]
    assert (tmp_path / "log").read_text() == "made\nmade\n", "a once and b once"
    assert len(set(files)) == 2 and all(Path(file).read_bytes() == b"content" for file in files)


def test_one_that_is_killed_leaves_nothing_in_the_way(tmp_path: Path):
    log = tmp_path / "log"
    with maker(log, "a") as killed:
        deadline = time.monotonic() + 20
        while not log.exists():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        killed.send_signal(signal.SIGKILL)
    assert STORE.find("a") is None
    assert STORE.get("a", lambda: b"content").read_bytes() == b"content"
