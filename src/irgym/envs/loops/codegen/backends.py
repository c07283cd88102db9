"""Back ends: what turns a nest into a function in memory, and which of them this machine can run."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import Protocol

from irgym.core.environment import BackendStatus
from irgym.core.errors import BackendError
from irgym.core.target import Target
from irgym.envs.loops.codegen import assembler as asm
from irgym.envs.loops.codegen import avx2, avx512, elf, llvm
from irgym.envs.loops.codegen.kernel import Kernel
from irgym.envs.loops.codegen.lower import lower
from irgym.envs.loops.contraction import Contraction
from irgym.envs.loops.nest import Nest
from irgym.measure.arrays import aligned
from irgym.measure.machine import fingerprint
from irgym.measure.native import ExecutableBuffer
from irgym.measure.sources import digest_of
from irgym.measure.target import host_target

CODE_ALIGNMENT = 64
"""Boundary, in bytes, on which the generators' code wants to begin."""

INSTALL_LLVM = "pip install 'irgym[loops]'"
"""The command that makes the llvm back end available."""


class Executable(Protocol):
    """A compiled kernel in memory."""

    @property
    def code(self) -> bytes | None:
        """Its machine code; None where the back end does not give it away."""
        ...

    def run(self, a: int, b: int, c: int, repetitions: int) -> None:
        """Compute C from A and B, float32 tensors at these addresses, `repetitions` >= 1 times.

        Other Python threads run meanwhile.
        """
        ...

    def close(self) -> None:
        """Free the machine code; `run` must not be called any more. Closing twice does nothing."""
        ...


class Backend(Protocol):
    """A code generator for a target."""

    @property
    def name(self) -> str:
        """Its name in `--backend`, tables and cache keys."""
        ...

    @property
    def target(self) -> Target:
        """What it makes code for; register tiles must fit into it."""
        ...

    def available(self) -> BackendStatus:
        """Say whether it runs here."""
        ...

    def compile(self, contraction: Contraction, nest: Nest) -> Executable:
        """Compile a nest.

        Raises:
            CodeTooLarge: Its code would be too long.
        """
        ...

    def object_file(self, contraction: Contraction, nest: Nest, name: str) -> bytes:
        """Return a relocatable object file with `void name(const float *a, const float *b, float *c)`.

        Raises:
            BackendError: It cannot write objects for this system.
            CodeTooLarge: The code would be too long.
        """
        ...

    def toolchain(self) -> str:
        """Return everything beside program and nest that the code depends on, as one line."""
        ...


class MachineCode:
    """Machine code of our own, in memory until it is closed.

    Attributes:
        code: The function's machine code.
    """

    def __init__(self, code: bytes, workspace: int) -> None:
        """Map the code of a function of the type `llvm.PROTOTYPE` that needs so many elements of workspace.

        Raises:
            OSError: The system has no memory left, or forbids executable memory.
        """
        self.code: bytes | None = code
        self._buffer = ExecutableBuffer(code)
        self._function = llvm.PROTOTYPE(self._buffer.address)
        self._workspace = aligned((workspace,))

    def run(self, a: int, b: int, c: int, repetitions: int) -> None:
        """Run the kernel `repetitions` times (at least once) on the tensors at these addresses."""
        self._function(a, b, c, repetitions, self._workspace.ctypes.data)

    def close(self) -> None:
        """Free the machine code."""
        self._buffer.close()


@dataclass(frozen=True)
class MachineCodeBackend:
    """Emits x86-64 machine code directly, in about a millisecond.

    Attributes:
        name: Its name.
        target: What it makes code for.
        emit: Returns the code of `void f(const float *a, const float *b, float *c, int64_t repetitions,
            float *workspace)`.
    """

    name: str
    target: Target
    emit: Callable[[Kernel], bytes]

    def available(self) -> BackendStatus:
        """Say whether the processor and the system run this code."""
        machine = fingerprint()
        if machine.architecture.lower() not in ("x86_64", "amd64") or machine.system == "Windows":
            detail = (
                f"emits x86-64 code for Linux and macOS, and this is {machine.architecture} {machine.system}"
            )
            return BackendStatus(self.name, False, detail)
        missing = [feature for feature in self.target.features if feature not in machine.features]
        if missing:
            return BackendStatus(self.name, False, f"this processor lacks {', '.join(missing)}")
        return BackendStatus(self.name, True, f"own x86-64 generator, {self.target.lanes} lanes")

    def compile(self, contraction: Contraction, nest: Nest) -> MachineCode:
        """Compile a nest.

        Raises:
            CodeTooLarge: Its code would be too long.
        """
        kernel = lower(contraction, nest, self.target)
        return MachineCode(self.emit(kernel), kernel.workspace)

    def object_file(self, contraction: Contraction, nest: Nest, name: str) -> bytes:
        """Return an ELF object with the function `name`, which has no argument for repetitions.

        Raises:
            BackendError: This is macOS, whose linker takes no ELF.
            CodeTooLarge: The code would be too long.
        """
        if fingerprint().system == "Darwin":
            raise BackendError(
                f"the {self.name} back end writes ELF objects only, which macOS cannot link: "
                "export a .c file, or choose the llvm back end"
            )
        kernel = lower(contraction, nest, self.target)
        # The function sets the number of repetitions and runs on into the code, which stays aligned.
        once = asm.move_immediate(asm.RCX, 1)
        save = b""
        if kernel.workspace:
            pointers = (asm.RDI, asm.RSI, asm.RDX)
            save = b"".join(map(asm.push, pointers))
            restore = asm.move(asm.R8, asm.RAX) + b"".join(map(asm.pop, reversed(pointers)))
            once = save + elf.workspace_address() + restore + once
        start = -len(once) % CODE_ALIGNMENT
        code = asm.nops(start) + once + self.emit(kernel)
        workspace = (start + len(save), 4 * kernel.workspace) if kernel.workspace else None
        return elf.relocatable(code, name, start, workspace)

    def toolchain(self) -> str:
        """Return the generator and its sources' hash."""
        return f"{self.name} {digest_of(*CODE)}"


@dataclass(frozen=True)
class LlvmBackend:
    """Emits LLVM IR and compiles it through llvmlite, in about ten milliseconds.

    Attributes:
        level: What it makes code for; None for this machine.
        name: Its name.
    """

    level: Target | None = None
    name: str = "llvm"

    @property
    def target(self) -> Target:
        """What it makes code for."""
        return self.level or host_target()

    def available(self) -> BackendStatus:
        """Say whether llvmlite is installed."""
        if find_spec("llvmlite") is None:
            return BackendStatus(self.name, False, "llvmlite is not installed", INSTALL_LLVM)
        return BackendStatus(self.name, True, f"{llvm.version()}, {self.target.lanes} lanes")

    def compile(self, contraction: Contraction, nest: Nest) -> llvm.LlvmExecutable:
        """Compile a nest.

        Raises:
            BackendError: llvmlite is not installed.
            CodeTooLarge: Its code would be too long.
        """
        kernel = lower(contraction, nest, self.target)
        ir = llvm.emit(kernel, "kernel", repetitions=True)
        return llvm.compile(ir, "kernel", self._processor, kernel.workspace)

    def object_file(self, contraction: Contraction, nest: Nest, name: str) -> bytes:
        """Return an object file of this system's format with the function `name`.

        Raises:
            BackendError: llvmlite is not installed.
            CodeTooLarge: The code would be too long.
        """
        ir = llvm.emit(lower(contraction, nest, self.target), name, repetitions=False)
        return llvm.compile_object(ir, self._processor)

    def toolchain(self) -> str:
        """Return the generator, irgym's sources' hash, LLVM's version and what code is made for.

        Raises:
            BackendError: llvmlite is not installed.
        """
        processor = self._processor
        features = hashlib.sha256(processor.features.encode()).hexdigest()[:12]
        return f"{self.name} {digest_of(*CODE)} {llvm.version()} {processor.cpu} {features}"

    @property
    def _processor(self) -> llvm.Processor:
        return llvm.processor_of(self.target)


AVX512 = MachineCodeBackend("avx512", avx512.TARGET, avx512.emit)
AVX2 = MachineCodeBackend("avx2", avx2.TARGET, avx2.emit)
LLVM = LlvmBackend()

CODE = (
    "envs/loops/checking.py",
    "envs/loops/codegen",
    "envs/loops/contraction.py",
    "envs/loops/nest.py",
    "envs/loops/runner.py",
)
"""The sources that turn a nest into code, check it and time it, beside those of all environments."""

BACKENDS: tuple[Backend, ...] = (AVX512, AVX2, LLVM)
"""All back ends, the preferred first."""


@cache
def _status(candidate: Backend) -> BackendStatus:
    """Return the state of a back end, probed once."""
    return candidate.available()


def preferred(target: Target | None = None) -> Backend:
    """Return the first back end that runs here and makes code for a target, by default this machine.

    Raises:
        BackendError: None does.
    """
    wanted = target or host_target()
    own = [candidate for candidate in (AVX512, AVX2) if candidate.target.name == wanted.name]
    for candidate in (*own, LlvmBackend(wanted)):
        if _status(candidate).available:
            return candidate
    raise BackendError(
        f"no code generator of loops for {wanted.name} runs on this machine: install the portable one with "
        f"{INSTALL_LLVM}"
    )


def backend(name: str, target: Target | None = None) -> Backend:
    """Return the back end of that name.

    Args:
        name: Its name.
        target: What it shall make code for; by default what it is for, else this machine.

    Raises:
        BackendError: There is none, or it does not run here or makes no code for the target.
    """
    named = {candidate.name: candidate for candidate in BACKENDS}
    if name not in named:
        raise BackendError(f"there is no back end {name!r} in loops: choose among {', '.join(named)}")
    found = LlvmBackend(target) if name == LLVM.name else named[name]
    status = _status(found)
    if not status.available:
        remedy = f"install it with {status.remedy}" if status.remedy else f"choose {preferred().name}"
        raise BackendError(f"the back end {name} does not run here ({status.detail}): {remedy}")
    if target is not None and found.target.name != target.name:
        raise BackendError(
            f"the back end {name} makes code for {found.target.name}, not for the target {target.name}: "
            f"leave one out, or choose the back end {LLVM.name}"
        )
    return found
