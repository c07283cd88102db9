"""LLVM's shared library: modules, passes and object code through its C interface.

It works in a child: LLVM ends the process where it finds itself wrong. A module is changed in place by
passes, and copied by `clone`. Passes see the uses of a value in the order in which they were made, so that
equal modules could differ in what a pass does to them: `order` puts uses into an order that follows from the
module's text. Names of new symbols are put in order, too. What passes do then depends on the module alone,
however it was made.
"""

import ctypes
import hashlib
import sys
from collections.abc import Callable
from ctypes import POINTER, byref, c_char_p, c_int, c_size_t, c_uint, c_void_p
from functools import cache
from typing import Any

from irgym.base.errors import BackendError, ProgramError
from irgym.envs.llvm.compiling.installed import Llvm, llvm_named
from irgym.envs.llvm.compiling.native.build import build
from irgym.envs.llvm.compiling.parts import DIGEST_BYTES, Hashing, Parts, on_functions
from irgym.llvmir.programs.files import BITCODE
from irgym.measure.passes.store import PassFailure

_TARGETS = ("X86", "AArch64")
_PARTS = ("TargetInfo", "Target", "TargetMC", "AsmPrinter", "AsmParser")
_OBJECT_FILE = 1
_RETURN_STATUS = 2
_DEFAULT, _PIC, _DEFAULT_MODEL = 2, 2, 0


KINDS = ("srcloc", "loop_constrainer.loop.clone", "irce.loop.clone")
"""Kinds of metadata that passes ask a context for by name. The context keeps them in a table, and all bitcode
repeats it. So it has them from the beginning: else digests would depend on what ran in it before."""


class _Graph(ctypes.Structure):
    """`struct graph` of native/graph.c."""

    _fields_ = [("nodes", c_int), ("edges", c_int), ("node", c_void_p), ("edge", c_void_p)]


class Library:
    """One LLVM, loaded into this process.

    Attributes:
        version: Its version, such as 23.1.4.
        release: The first number of it.

    Raises:
        BackendError: It cannot be loaded.
    """

    def __init__(self, llvm: Llvm) -> None:
        try:
            for file in llvm.runtime:
                ctypes.CDLL(str(file), mode=ctypes.RTLD_GLOBAL)
            self._llvm = ctypes.CDLL(str(llvm.library), mode=ctypes.RTLD_GLOBAL)
            self.native = ctypes.CDLL(str(build()))
        except OSError as error:
            raise BackendError(f"{llvm.library.name} cannot be loaded ({error}): reinstall it") from error
        self._targets = [name for name in _TARGETS if hasattr(self._llvm, f"LLVMInitialize{name}Target")]
        for target in self._targets:
            for part in _PARTS:
                self.function(f"LLVMInitialize{target}{part}", None)()
        numbers = [c_uint() for _ in range(3)]
        self.function("LLVMGetVersion", None, *[POINTER(c_uint)] * 3)(*map(byref, numbers))
        self.version = ".".join(str(number.value) for number in numbers)
        self.release = numbers[0].value
        self.options = self.function("LLVMCreatePassBuilderOptions", c_void_p)()
        self._bind()

    def function(self, name: str, result: Any, *arguments: Any) -> Callable[..., Any]:
        """Return a function of LLVM's C interface, with its types."""
        found = self._llvm[name]
        found.restype, found.argtypes = result, list(arguments)
        return found

    def _bind(self) -> None:
        p, text = c_void_p, POINTER(c_char_p)
        self.new_context = self.function("LLVMContextCreate", p)
        self.drop_context = self.function("LLVMContextDispose", None, p)
        self.kind = self.function("LLVMGetMDKindIDInContext", c_uint, p, c_char_p, c_uint)
        self.discard_names = self.function("LLVMContextSetDiscardValueNames", None, p, c_int)
        self.copy_buffer = self.function(
            "LLVMCreateMemoryBufferWithMemoryRangeCopy", p, c_char_p, c_size_t, c_char_p
        )
        self.buffer_start = self.function("LLVMGetBufferStart", p, p)
        self.buffer_size = self.function("LLVMGetBufferSize", c_size_t, p)
        self.drop_buffer = self.function("LLVMDisposeMemoryBuffer", None, p)
        self.parse = self.function("LLVMParseIRInContext", c_int, p, p, POINTER(p), text)
        self.clone = self.function("LLVMCloneModule", p, p)
        self.link = self.function("LLVMLinkModules2", c_int, p, p)
        self.drop_module = self.function("LLVMDisposeModule", None, p)
        self.run = self.function("LLVMRunPasses", p, p, c_char_p, p, p)
        self.error_text = self.function("LLVMGetErrorMessage", p, p)
        self.drop_error_text = self.function("LLVMDisposeErrorMessage", None, p)
        self.drop_text = self.function("LLVMDisposeMessage", None, p)
        self.print_module = self.function("LLVMPrintModuleToString", p, p)
        self.write_bitcode = self.function("LLVMWriteBitcodeToMemoryBuffer", p, p)
        self.verify = self.function("LLVMVerifyModule", c_int, p, c_int, POINTER(p))
        self.emit = self.function(
            "LLVMTargetMachineEmitToMemoryBuffer", c_int, p, p, c_int, POINTER(p), POINTER(p)
        )
        self.triple = self.function("LLVMGetTarget", c_char_p, p)
        self.order = self.native.irgym_order
        self.order.argtypes = [p]
        self.counts = self.native.irgym_counts
        self.counts.argtypes = [p, p, c_int]
        self.make_graph, self.drop_graph = self.native.irgym_graph, self.native.irgym_drop_graph
        self.make_graph.argtypes, self.make_graph.restype = [p, POINTER(_Graph)], None
        self.drop_graph.argtypes, self.drop_graph.restype = [POINTER(_Graph)], None
        self.native.irgym_handle.argtypes = [p]
        self.native.irgym_complaint.restype = c_char_p
        self.hashing = Hashing(self.native)

    def taken(self, buffer: int) -> bytes:
        """Return the content of a memory buffer, and dispose of it."""
        content = ctypes.string_at(self.buffer_start(buffer), self.buffer_size(buffer))
        self.drop_buffer(buffer)
        return content

    def message(self, pointer: int | None) -> str:
        """Return a text of LLVM's, and dispose of it."""
        if not pointer:
            return ""
        text = ctypes.string_at(pointer).decode(errors="replace")
        self.drop_text(pointer)
        return text

    @cache  # noqa: B019  a library lives as long as its process
    def machine(self, triple: str) -> int:
        """Return the target machine of a triple, by default this machine's, at the lowest level.

        Raises:
            ProgramError: LLVM has no code generator for it here.
        """
        p = c_void_p
        triple = triple or self.function("LLVMGetDefaultTargetTriple", c_char_p)().decode()
        target, error = c_void_p(), c_void_p()
        find = self.function("LLVMGetTargetFromTriple", c_int, c_char_p, POINTER(p), POINTER(p))
        if find(triple.encode(), byref(target), byref(error)):
            raise ProgramError(
                f"the module is for {triple}, and this LLVM makes code for {' and '.join(self._targets)}: "
                "compile it for one of them"
            )
        make = self.function("LLVMCreateTargetMachine", p, p, *[c_char_p] * 3, c_int, c_int, c_int)
        cpu = b"x86-64" if triple.startswith("x86_64") else b"generic"
        return make(target, triple.encode(), cpu, b"", _DEFAULT, _PIC, _DEFAULT_MODEL)


class Context:
    """Where modules live that have types and constants in common: those of one program.

    Args:
        library: The library.
        named: Whether to keep the names of values, for a text that a person reads.

    Attributes:
        known: What hashes of its modules have in common; see native/hashing.h.
    """

    def __init__(self, library: Library, named: bool = False) -> None:
        self.library = library
        self._named = named
        self.known = library.hashing.new_context()
        self._handle = self._new(named)

    def _new(self, named: bool) -> int:
        handle = self.library.new_context()
        self.library.discard_names(handle, not named)
        self.library.native.irgym_handle(handle)
        for name in KINDS:
            self.library.kind(handle, name.encode(), len(name))
        return handle

    def __del__(self) -> None:
        if not sys.is_finalizing():  # LLVM may be gone by then
            self.library.hashing.drop_context(self.known)
            self.library.drop_context(self._handle)

    def read(self, content: bytes, name: str) -> "Module":
        """Return the module of IR as text or bitcode; read one alone into a context, or types are renamed.

        Raises:
            ProgramError: LLVM refuses it, or it is for a target that LLVM has no code generator for.
        """
        if self._named or content.startswith(BITCODE):
            return Module(self, self._parsed(self._handle, content, name))
        # Text cannot be read without its names.
        return Module(
            self, self._parsed(self._handle, Context(self.library, True).read(content, name).bitcode(), name)
        )

    def _parsed(self, handle: int, content: bytes, name: str) -> int:
        library = self.library
        module, error = c_void_p(), c_char_p()
        buffer = library.copy_buffer(content, len(content), name.encode())
        library.native.irgym_complaint()
        if library.parse(handle, buffer, byref(module), byref(error)):
            said = (error.value or library.native.irgym_complaint()).decode(errors="replace")
            line = next((line.strip() for line in said.splitlines() if "error:" in line), said.strip())
            raise ProgramError(
                f"LLVM {library.version} cannot read {name} ({line[:200]}): make it with a clang of "
                "that version or an older one"
            )
        assert module.value is not None
        library.hashing.keep_names(self.known, module.value)
        return module.value


class Module:
    """A module of LLVM's IR in a context.

    Attributes:
        context: The context.
        handle: LLVM's pointer.
        machine: Its target machine.
    """

    def __init__(self, context: Context, handle: int, machine: int | None = None) -> None:
        self.context = context
        self._library = context.library
        self.handle = handle
        self.machine = machine or self._library.machine(self._library.triple(handle).decode(errors="replace"))
        self._parts: Parts | None = None
        self._hashed = False

    def __del__(self) -> None:
        if self.handle and not sys.is_finalizing():
            self._library.drop_module(self.handle)

    def clone(self) -> "Module":
        """Return a copy, to which passes do the same."""
        copy = Module(self.context, self._library.clone(self.handle), self.machine)
        copy.order()
        if self._hashed:
            copy._parts, copy._hashed = self._parts and self._parts.copy(copy.handle), True
        return copy

    def link(self, other: "Module") -> None:
        """Link a module of the same context into this one; it is gone afterwards.

        Raises:
            PassFailure: They do not go together, such as two definitions of a name.
        """
        handle, other.handle = other.handle, 0
        wrong = self._library.link(self.handle, handle)
        complaint = self._library.native.irgym_complaint()
        if wrong or complaint:
            raise PassFailure(complaint.decode(errors="replace") or "LLVM does not say why")

    def order(self) -> int:
        """Put the uses of values into an order that follows from the text; return how many instructions."""
        return int(self._library.order(self.handle))

    def run(self, passes: str) -> int:
        """Run passes, as LLVM's opt takes them in `-passes`; return the number of instructions afterwards.

        Raises:
            PassFailure: LLVM knows no such pass, or the pass returned an error.
        """
        parts, inner, ran = self._looked(), on_functions(passes), True
        if parts and inner:
            error, ran = parts.run(passes, inner, self.machine, self._library.options)
            if not parts.readable:
                self._parts = None
        else:
            error = self._library.run(self.handle, passes.encode(), self.machine, self._library.options)
            if not error:
                self._library.hashing.rename(self.context.known, self.handle)
            self._parts, self._hashed = None, False
        self._raise(error)
        return self.order() if ran or not parts else parts.instructions

    def _raise(self, error: int | None) -> None:
        """Raise what LLVM complained about, if it did."""
        if error:
            pointer = self._library.error_text(error)
            said = ctypes.string_at(pointer).decode(errors="replace")
            self._library.drop_error_text(pointer)
            raise PassFailure(said)
        complaint = self._library.native.irgym_complaint()
        if complaint:
            raise PassFailure(complaint.decode(errors="replace"))

    def _looked(self) -> Parts | None:
        """Return the functions with their hashes; None if hashes cannot show all that the module is."""
        if not self._hashed:
            hashing = self._library.hashing
            self._parts, self._hashed = hashing.parts(self.context.known, self.handle), True
        return self._parts

    def bitcode(self) -> bytes:
        """Return the module as bitcode."""
        return self._library.taken(self._library.write_bitcode(self.handle))

    def digest(self) -> bytes:
        """Return a hash of all that the module is, attributes and metadata included."""
        parts = self._looked()
        if parts:
            return parts.digest()
        return hashlib.blake2b(self.bitcode(), digest_size=DIGEST_BYTES).digest()

    def counts(self, size: int) -> bytes:
        """Return what observations count, int32 [size]: `struct counts` of native/counting.c.

        Raises:
            ValueError: That structure has another size.
        """
        counts = (c_int * size)()
        if self._library.counts(self.handle, counts, size) != size:
            raise ValueError(f"the counts of a module are no {size} numbers")
        return bytes(counts)

    def graph(self) -> tuple[bytes, bytes]:
        """Return the program graph: int32, nodes [N, 5] and edges [E, 4]; see observing/graphs.py."""
        graph = _Graph()
        self._library.make_graph(self.handle, byref(graph))
        nodes = ctypes.string_at(graph.node, graph.nodes * 5 * 4)
        edges = ctypes.string_at(graph.edge, graph.edges * 4 * 4) if graph.edges else b""
        self._library.drop_graph(byref(graph))
        return nodes, edges

    def verify(self) -> str:
        """Return the complaint of LLVM's verifier; empty if there is none."""
        said = c_void_p()
        wrong = self._library.verify(self.handle, _RETURN_STATUS, byref(said))
        text = self._library.message(said.value)
        return text if wrong else ""

    def text(self) -> str:
        """Return the module as text."""
        return self._library.message(self._library.print_module(self.handle))

    def code(self) -> bytes:
        """Return the object file of the module.

        Raises:
            PassFailure: LLVM generates no code for it.
        """
        buffer, said = c_void_p(), c_void_p()
        copy = self.clone()  # generating code changes a module
        if self._library.emit(self.machine, copy.handle, _OBJECT_FILE, byref(said), byref(buffer)):
            raise PassFailure(self._library.message(said.value))
        assert buffer.value is not None
        return self._library.taken(buffer.value)


@cache
def library(name: str) -> Library:
    """Return this process's LLVM of a back end's name. Only one is ever loaded into a process.

    Raises:
        BackendError: It is not installed, or cannot be loaded.
    """
    return Library(llvm_named(name))
