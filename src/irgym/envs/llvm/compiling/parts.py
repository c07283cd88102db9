"""Child side: functions of a module with hashes of what they are, and passes on those that they may change.

Bitcode shows all that a module is, too, but takes two to three times as long. Hashes also tell which
functions a pass is known to leave as they are; see native/skipping.c.
"""

import ctypes
import sys
from ctypes import POINTER, byref, c_char_p, c_int, c_void_p
from functools import lru_cache

DIGEST_BYTES = 16
"""Length of a hash."""

_WRAPPER = "function("


class Hashing:
    """The C that hashes functions, and what it remembers of passes that change nothing.

    Args:
        native: The library that is built from native/.
    """

    def __init__(self, native: ctypes.CDLL) -> None:
        p = c_void_p
        self.new_context, self.drop_context = native.irgym_context, native.irgym_drop_context
        self.new_context.restype, self.drop_context.argtypes = p, [p]
        self.keep_names, self.rename = native.irgym_keep_names, native.irgym_rename
        self.keep_names.restype, self.keep_names.argtypes = None, [p, p]
        self.rename.restype, self.rename.argtypes = None, [p, p]
        self.new, self.copy, self.drop = native.irgym_parts, native.irgym_copy_parts, native.irgym_drop_parts
        self.new.restype, self.new.argtypes = p, [p, p]
        self.copy.restype, self.copy.argtypes = p, [p, p]
        self.drop.restype, self.drop.argtypes = None, [p]
        self.digest = native.irgym_parts_digest
        self.digest.argtypes = [p, c_char_p]
        self.run = native.irgym_run_on_functions
        self.run.restype = p
        self.run.argtypes = [p, p, c_char_p, c_char_p, p, p, POINTER(c_int), POINTER(c_int)]
        native.irgym_known.restype = p
        self.known: int = native.irgym_known()

    def parts(self, context: int, module: int) -> "Parts | None":
        """Return the functions of a module; None if there is something that hashes cannot show.

        Args:
            context: What is known of the module's context.
            module: The module.
        """
        handle = self.new(context, module)
        return Parts(self, handle) if handle else None


class Parts:
    """The functions of a module with their hashes.

    Attributes:
        readable: Whether the hashes show all that the module is.
    """

    def __init__(self, hashing: Hashing, handle: int) -> None:
        self._hashing = hashing
        self._handle = handle
        self.readable = True

    def __del__(self) -> None:
        if not sys.is_finalizing():
            self._hashing.drop(self._handle)

    def copy(self, module: int) -> "Parts":
        """Return the same of a copy of the module."""
        return Parts(self._hashing, self._hashing.copy(self._handle, module))

    def digest(self) -> bytes:
        """Return a hash of the module."""
        made = ctypes.create_string_buffer(DIGEST_BYTES)
        self._hashing.digest(self._handle, made)
        return made.raw

    @property
    def instructions(self) -> int:
        """Number of instructions."""
        return int(self._hashing.digest(self._handle, ctypes.create_string_buffer(DIGEST_BYTES)))

    def run(self, passes: str, inner: str, machine: int, options: int) -> tuple[int | None, bool]:
        """Run passes of functions; return LLVM's error, if any, and whether they ran on any function.

        Args:
            passes: The passes, as LLVM's opt takes them for a module.
            inner: The same for a function: see `on_functions`.
            machine: The target machine.
            options: Options of the passes.
        """
        ran, readable = c_int(), c_int()
        texts = passes.encode(), inner.encode()
        error = self._hashing.run(
            self._hashing.known, self._handle, *texts, machine, options, byref(ran), byref(readable)
        )
        self.readable = bool(readable.value)
        return error, ran.value > 0


@lru_cache
def on_functions(passes: str) -> str:
    """Return what a list of passes runs on each function; empty if it does more than that."""
    if not passes.startswith(_WRAPPER) or not passes.endswith(")"):
        return ""
    inner = passes[len(_WRAPPER) : -1]
    depth = 0
    for letter in inner:
        depth += (letter == "(") - (letter == ")")
        if depth < 0:
            return ""
    return inner
