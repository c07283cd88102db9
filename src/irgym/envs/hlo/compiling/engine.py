"""XLA's HLO modules and passes, in this process. A failed check within XLA aborts the process: use a child.

Loading takes about a second and 300 MB.
"""

import ctypes
import os
import re
from ctypes import POINTER, byref, c_char_p, c_double, c_int, c_int32, c_int64, c_size_t, c_uint64, c_void_p
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from irgym.base.errors import BackendError, ProgramError
from irgym.envs.hlo.compiling.native.build import build
from irgym.measure.passes.store import PassFailure

_SIGNATURES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "error": (c_char_p, ()),
    "pass_count": (c_int, ()),
    "pass_name": (c_char_p, (c_int,)),
    "opcode_count": (c_int, ()),
    "opcode_name": (c_void_p, (c_int, POINTER(c_size_t))),
    "free": (None, (c_void_p,)),
    "from_text": (c_void_p, (c_char_p, c_size_t)),
    "from_proto": (c_void_p, (c_char_p, c_size_t, c_int)),
    "devices": (c_int64, (c_void_p,)),
    "note_devices": (None, (c_void_p, c_int64, c_int64)),
    "dynamic": (c_void_p, (c_void_p, POINTER(c_size_t))),
    "execute": (c_void_p, (c_void_p, c_char_p, c_size_t, POINTER(c_size_t))),
    "open_loops": (c_int64, (c_void_p,)),
    "delete": (None, (c_void_p,)),
    "clone": (c_void_p, (c_void_p,)),
    "orders": (c_void_p, (c_void_p, POINTER(c_size_t))),
    "text": (c_void_p, (c_void_p, POINTER(c_size_t))),
    "proto": (c_void_p, (c_void_p, POINTER(c_size_t))),
    "run": (c_int, (c_void_p, c_int)),
    "verify": (c_int, (c_void_p,)),
    "content": (None, (c_void_p, POINTER(c_int32), POINTER(c_uint64))),
    "digest": (c_uint64, (c_void_p,)),
    "fingerprint": (c_uint64, (c_void_p,)),
    "analysis": (c_int, (c_void_p, POINTER(c_double))),
    "size": (c_int64, (c_void_p,)),
    "graph": (c_int64, (c_void_p, c_void_p, c_void_p)),
}


_CONSTANT = re.compile(r"^.* constant\(.*-0\b.*$", re.MULTILINE)
_NEGATIVE_ZERO = re.compile(r"(?<=[\s,{(])-0(?=[\s,})])")

REASON = 240
"""Greatest length of an error message of XLA, in characters; some contain the whole program."""


class Content(NamedTuple):
    """Summary of a module, from one walk over it.

    Attributes:
        counts: Instructions of each opcode in all computations, int32 as bytes.
        total: Instructions in all computations.
        entry: Instructions of the entry computation.
        passes: A bit for each of `Engine.passes`; 0 if the pass has nothing to change.
    """

    counts: bytes
    total: int
    entry: int
    passes: int


class Engine:
    """The loaded library.

    Attributes:
        passes: Names of the passes, in the library's order.
        opcodes: Names of the opcodes, in XLA's order.
    """

    def __init__(self, path: Path) -> None:
        # Keep XLA's log out of the child's error output, which explains crashes.
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
        try:
            library = ctypes.CDLL(str(path))
        except OSError as error:
            raise BackendError(
                f"the engine of hlo does not load ({error}): delete {path} and try again"
            ) from error
        for name, (result, arguments) in _SIGNATURES.items():
            function = getattr(library, f"irgym_{name}")
            function.restype, function.argtypes = result, arguments
        self.library: Any = library
        self.passes = tuple(library.irgym_pass_name(i).decode() for i in range(library.irgym_pass_count()))
        self.opcodes = tuple(
            self.buffer("opcode_name", index).decode() for index in range(library.irgym_opcode_count())
        )
        # Each `Module.content` fills them, one at a time: to allocate them for each step is slow.
        self._counts = (c_int32 * len(self.opcodes))()
        self._rest = (c_uint64 * 3)()
        self._numbers = {name: number for number, name in enumerate(self.passes)}

    def buffer(self, function: str, *arguments: Any) -> bytes:
        """Call a function that returns a buffer, and return its content."""
        size = c_size_t()
        pointer = getattr(self.library, f"irgym_{function}")(*arguments, byref(size))
        try:
            return ctypes.string_at(pointer, size.value)
        finally:
            self.library.irgym_free(pointer)

    def content(self, handle: int) -> Content:
        """Return `Module.content` of a module."""
        self.library.irgym_content(handle, self._counts, self._rest)
        total, entry, passes = self._rest
        return Content(bytes(self._counts), total, entry, passes)

    def number(self, name: str) -> int:
        """Return the index of a pass in `passes`."""
        return self._numbers[name]

    def failure(self) -> str:
        """Return why the last call failed, in one line."""
        said = " ".join(self.library.irgym_error().decode(errors="replace").split())
        return said if len(said) <= REASON else said[:REASON] + " ..."

    def from_text(self, text: str) -> "Module":
        """Parse HLO text.

        Raises:
            ProgramError: It is malformed, or uses features that this version of XLA lacks.
        """
        data = text.encode()
        return self._checked(self.library.irgym_from_text(data, len(data)), "HLO text")

    def from_proto(self, data: bytes, origins: bool = True) -> "Module":
        """Read a serialized HloModuleProto.

        Args:
            data: The proto.
            origins: Whether to keep the source location of each instruction. Passes ignore it, and modules
                without it are smaller and faster to copy.

        Raises:
            ProgramError: It is something else, or uses features that this version of XLA lacks.
        """
        handle = self.library.irgym_from_proto(data, len(data), origins)
        return self._checked(handle, "an HloModuleProto")

    def _checked(self, handle: int | None, form: str) -> "Module":
        if not handle:
            raise ProgramError(f"XLA cannot read it as {form}: {self.failure()}")
        return Module(self, handle)


class Module:
    """An HLO module that passes change in place."""

    def __init__(self, engine: Engine, handle: int) -> None:
        self._engine = engine
        self._library = engine.library
        self._handle = handle

    def __del__(self) -> None:
        self._library.irgym_delete(self._handle)

    @property
    def size(self) -> int:
        """Number of instructions in all computations."""
        return int(self._library.irgym_size(self._handle))

    def clone(self) -> "Module":
        """Return a copy. This takes longer than most passes: about 0.7 us an instruction."""
        return Module(self._engine, self._library.irgym_clone(self._handle))

    def orders(self) -> str:
        """Return the orders on which passes depend; the text does not show all of them.

        For each computation, in the order in which they are stored, a line with its name; a line for each
        instruction with its name and users; and a line with the instructions by number. The last two lines
        have the computations by number and in post order.
        """
        return self._engine.buffer("orders", self._handle).decode()

    def run(self, number: int) -> bool:
        """Run the pass with that index in `Engine.passes`; return whether it changed the module.

        Raises:
            PassFailure: The pass returned an error; the module must not be used after it.
        """
        changed = self._library.irgym_run(self._handle, number)
        if changed < 0:
            raise PassFailure(f"{self._engine.passes[number]}: {self._engine.failure()}")
        return bool(changed)

    def verify(self) -> None:
        """Check the module's invariants.

        Raises:
            PassFailure: One is broken.
        """
        if self._library.irgym_verify(self._handle) < 0:
            raise PassFailure(f"XLA's verifier: {self._engine.failure()}")

    def content(self) -> Content:
        """Return counts of instructions and the applicable passes, from one walk over the module."""
        return self._engine.content(self._handle)

    def digest(self) -> int:
        """Return a hash of the graph that ignores the order and names of instructions.

        Attributes of rare instructions are ignored. Searches use it to recognise modules.
        """
        return int(self._library.irgym_digest(self._handle))

    def fingerprint(self) -> int:
        """Return a hash of the whole module except its names; it is equal in all processes."""
        return int(self._library.irgym_fingerprint(self._handle))

    def analysis(self) -> tuple[float, float, float]:
        """Return FLOPs, transcendental operations and bytes accessed by XLA's cost analysis.

        Raises:
            PassFailure: The analysis lacks an instruction.
        """
        result = (c_double * 3)()
        if self._library.irgym_analysis(self._handle, result) < 0:
            raise PassFailure(f"XLA's cost analysis: {self._engine.failure()}")
        return result[0], result[1], result[2]

    def text(self) -> str:
        """Return HLO text that parses back."""
        text = self._engine.buffer("text", self._handle).decode(errors="replace")
        # XLA prints negative zero as an integer, and reads that as 0.
        return _CONSTANT.sub(lambda line: _NEGATIVE_ZERO.sub("-0.0", line[0]), text)

    def proto(self) -> bytes:
        """Return a serialized HloModuleProto."""
        return self._engine.buffer("proto", self._handle)

    @property
    def devices(self) -> int:
        """Number of devices of the module: replicas times partitions."""
        return int(self._library.irgym_devices(self._handle))

    def note_devices(self, replicas: int = 1, partitions: int = 1) -> None:
        """Store the number of devices in an attribute, as protos lack it; reading a proto removes it."""
        self._library.irgym_note_devices(self._handle, replicas, partitions)

    def dynamic(self) -> str:
        """Return the first operation whose size is known only at run time; empty if there is none."""
        return self._engine.buffer("dynamic", self._handle).decode(errors="replace")

    def execute(self, arguments: bytes) -> bytes:
        """Run the module on XLA:CPU unchanged.

        Args:
            arguments: The arrays that it takes, concatenated, each in row-major order.

        Returns:
            The arrays of its results in the same form.

        Raises:
            PassFailure: XLA:CPU rejects it.
        """
        size = c_size_t()
        pointer = self._library.irgym_execute(self._handle, arguments, len(arguments), byref(size))
        if not pointer:
            raise PassFailure(f"XLA:CPU refuses the module: {self._engine.failure()}")
        try:
            return ctypes.string_at(pointer, size.value)
        finally:
            self._library.irgym_free(pointer)

    def open_loops(self) -> int:
        """Return the number of loops whose iterations XLA cannot count beforehand.

        Raises:
            PassFailure: XLA cannot analyse them.
        """
        count = int(self._library.irgym_open_loops(self._handle))
        if count < 0:
            raise PassFailure(f"XLA's count of iterations: {self._engine.failure()}")
        return count

    def graph(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the graph: nodes (opcode, computation, elements) and edges (from, to, whether a call).

        Shapes [N, 3] and [E, 3]. The edge of a call starts at the root of the called computation.
        """
        edges = np.empty((self._library.irgym_graph(self._handle, None, None), 3), dtype=np.int64)
        nodes = np.empty((self.size, 3), dtype=np.int64)
        self._library.irgym_graph(self._handle, nodes.ctypes.data, edges.ctypes.data)
        return nodes, edges


@cache
def load_engine() -> Engine:
    """Return the engine: built on first use on a machine, loaded once per process.

    Raises:
        BackendError: It cannot be built or loaded.
    """
    return Engine(build())
