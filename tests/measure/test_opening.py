import os
from pathlib import Path

import pytest

from irgym.base.errors import ProgramError
from irgym.base.reading import check_size, content_of_program
from irgym.core.cost import Call
from irgym.measure.isolation.protocol import GIB
from irgym.measure.opening import Opener, limits_of


def test_limits_grow_with_the_file():
    small, large, huge = limits_of(0), limits_of(1 << 30), limits_of(1 << 40)
    assert limits_of(1000) == small
    assert small.timeout_s < large.timeout_s and small.memory_bytes < large.memory_bytes
    assert huge.memory_bytes == 12 * GIB


def test_a_file_that_takes_too_long_is_refused():
    with Opener("it", "choose another", seconds=1.0) as opener:
        with pytest.raises(ProgramError, match=r"mine is too much for it \(.*1 s\): choose another"):
            opener.call(Call("builtins:pow", (7, 10**9, 10**10**6)), "mine")
        assert opener.call(Call("builtins:len", ("abc",)), "mine") == 3


def test_a_file_that_takes_too_much_memory_is_refused():
    with Opener("it") as opener, pytest.raises(ProgramError, match="mine is too much for it"):
        opener.call(Call("builtins:bytearray", (8 * GIB,)), "mine")


def test_a_child_with_other_limits_replaces_the_first():
    with Opener("it") as opener:
        first = opener.call(Call("os:getpid"), "mine")
        assert opener.call(Call("os:getpid"), "mine", 1000) == first
        assert opener.call(Call("os:getpid"), "mine", GIB) != first


def test_sizes_are_checked_before_anything_is_read(tmp_path: Path):
    path = tmp_path / "program"
    path.write_bytes(b"abc")
    assert check_size(path) == 3 and content_of_program(path) == b"abc"
    with pytest.raises(ProgramError, match="has 0 MiB, and at most 0 MiB are read"):
        content_of_program(path, 2)
    with path.open("wb") as file:
        file.truncate(100 << 30)
    with pytest.raises(ProgramError, match="has 102,400 MiB"):
        content_of_program(path)


def test_only_regular_files_are_opened(tmp_path: Path):
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "zeros").symlink_to("/dev/zero")
    for name in ("fifo", "zeros", "."):
        with pytest.raises(ProgramError, match="no regular file"):
            content_of_program(tmp_path / name)
    with pytest.raises(ProgramError, match="cannot read"):
        content_of_program(tmp_path / "missing")
