import ctypes
import mmap
import platform
import re
import sys
from pathlib import Path

import pytest

from irgym.measure.native import ExecutableBuffer

x86 = pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="runs x86-64 machine code")

RETURN_42 = bytes.fromhex("b82a000000c3")  # mov eax, 42; ret


def permissions(address):
    for line in Path("/proc/self/maps").read_text().splitlines():
        first, last, flags = re.match(r"(\w+)-(\w+) (\S{4})", line).groups()
        if int(first, 16) <= address < int(last, 16):
            return flags
    return ""


@x86
def test_code_runs():
    with ExecutableBuffer(RETURN_42) as buffer:
        assert ctypes.CFUNCTYPE(ctypes.c_int)(buffer.address)() == 42


@x86
def test_code_longer_than_a_page_is_copied_whole():
    nops = b"\x90" * (3 * mmap.PAGESIZE)
    with ExecutableBuffer(nops + RETURN_42) as buffer:
        assert ctypes.CFUNCTYPE(ctypes.c_int)(buffer.address)() == 42


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_pages_are_never_writable_and_executable():
    with ExecutableBuffer(RETURN_42) as buffer:
        address = buffer.address
        assert permissions(address) == "r-xp"
    assert permissions(address) != "r-xp"


def test_closing_twice_is_allowed():
    buffer = ExecutableBuffer(b"\xc3")
    buffer.close()
    buffer.close()
    assert buffer.address == 0


def test_no_code_is_refused():
    with pytest.raises(ValueError, match="no code"):
        ExecutableBuffer(b"")
