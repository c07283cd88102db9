"""Machine code in memory that is never writable and executable at the same time (W^X)."""

import ctypes
import mmap
import os
from functools import cache

from irgym.base.closing import Closing

_FAILED = ctypes.c_void_p(-1).value


@cache
def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = (
        ctypes.c_void_p,
        ctypes.c_size_t,
        ctypes.c_int,
        ctypes.c_int,
        ctypes.c_int,
        ctypes.c_int64,
    )
    libc.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
    return libc


def _os_error(what: str) -> OSError:
    number = ctypes.get_errno()
    return OSError(number, f"{what}: {os.strerror(number)}")


class ExecutableBuffer(Closing):
    """A copy of machine code that can be called through `address` until the buffer is closed.

    The pages are writable while the code is copied in, and then readable and executable only.

    Attributes:
        address: Where the code begins, aligned to a page; 0 once the buffer is closed.
    """

    def __init__(self, code: bytes):
        """Map a copy of `code`.

        Raises:
            ValueError: There is no code.
            OSError: The system has no memory left, or forbids executable memory.
        """
        if not code:
            raise ValueError("there is no code to map")
        self.address = 0
        self._size = -(-len(code) // mmap.PAGESIZE) * mmap.PAGESIZE
        # A separate private mapping: other code on the same page would have to become writable again.
        address = _libc().mmap(
            None, self._size, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0
        )
        if address == _FAILED:
            raise _os_error("cannot map memory for machine code")
        self.address = int(address)
        ctypes.memmove(self.address, code, len(code))
        if _libc().mprotect(self.address, self._size, mmap.PROT_READ | mmap.PROT_EXEC):
            error = _os_error("cannot make machine code executable")
            self.close()
            raise error

    def close(self) -> None:
        """Unmap the code; calling it afterwards crashes. Closing twice does nothing."""
        if self.address:
            _libc().munmap(self.address, self._size)
            self.address = 0

    def __del__(self) -> None:
        # Absent when the constructor failed early.
        if getattr(self, "address", 0):
            self.close()
