"""Back ends: compilers of nests to functions in memory, and their availability on this machine."""

import hashlib
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.util import find_spec
from typing import Protocol

from irgym.base.errors import BackendError
from irgym.core.environment import BackendStatus
from irgym.core.target import Target
from irgym.envs.loops.compiling import avx2, avx512, llvm, llvm_ir
from irgym.envs.loops.compiling.executable import Compiled, Executable, MachineCode
from irgym.envs.loops.compiling.kernel import Kernel
from irgym.envs.loops.compiling.lower import lower, rows_of
from irgym.envs.loops.compiling.object_code import object_code
from irgym.envs.loops.compiling.precision import PRECISIONS
from irgym.envs.loops.compiling.threads import Team, shares
from irgym.envs.loops.nest import Nest
from irgym.envs.loops.programs.contraction import Contraction
from irgym.envs.loops.programs.elements import ELEMENTS, F32
from irgym.measure.code_digest import digest_of
from irgym.measure.machine import check_threads, fingerprint, threads_text
from irgym.measure.target import host_target

INSTALL_LLVM = "pip install 'irgym[loops]'"
"""Command that installs the llvm back end."""


class Backend(Protocol):
    """Compiler of nests for a target."""

    @property
    def name(self) -> str:
        """Name in `--backend`, tables and cache keys."""
        ...

    @property
    def target(self) -> Target:
        """Target of the generated code, whose registers limit the tiles."""
        ...

    @property
    def types(self) -> Collection[str]:
        """Names of the types of elements that it has instructions for."""
        ...

    def available(self) -> BackendStatus:
        """Return whether it runs here, and why not."""
        ...

    def compile(self, contraction: Contraction, nest: Nest) -> Executable:
        """Compile a nest.

        Raises:
            CodeTooLarge: The code would be too long.
        """
        ...

    def object_file(self, contraction: Contraction, nest: Nest, name: str) -> bytes:
        """Return a relocatable object file with `void name(const float *a, const float *b, float *c)`.

        Raises:
            BackendError: It cannot write object files for this system.
            CodeTooLarge: The code would be too long.
        """
        ...

    def toolchain(self) -> str:
        """Return, in one line, everything besides program and nest on which the code depends."""
        ...


class Generator(Backend, Protocol):
    """Code generator, whose code runs on the calling thread."""

    def compile(
        self, contraction: Contraction, nest: Nest, part: Mapping[str, int] | None = None
    ) -> Compiled:
        """Compile a nest.

        Args:
            contraction: The program.
            nest: Its schedule.
            part: How much of dimensions to compute, from their first index: all where not named.

        Raises:
            CodeTooLarge: The code would be too long.
        """
        ...


@dataclass(frozen=True)
class MachineCodeBackend:
    """Back end that emits x86-64 machine code directly, in about a millisecond.

    Attributes:
        name: Name of the back end.
        target: Target of the code.
        emit: Returns the code of `void f(const float *a, const float *b, float *c, int64_t repetitions,
            float *workspace)`.
        types: Names of the types of elements that it has instructions for.
    """

    name: str
    target: Target
    emit: Callable[[Kernel], bytes]
    types: Collection[str] = tuple(PRECISIONS)

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

    def compile(
        self, contraction: Contraction, nest: Nest, part: Mapping[str, int] | None = None
    ) -> MachineCode:
        """Compile a nest, or a part of it.

        Raises:
            CodeTooLarge: The code would be too long.
        """
        kernel = lower(contraction, nest, self.target, part)
        return MachineCode(self.emit(kernel), kernel.workspace, kernel.elements)

    def object_file(self, contraction: Contraction, nest: Nest, name: str) -> bytes:
        """Return an ELF object with the function `name`, which takes no repetitions.

        Raises:
            BackendError: This is macOS, whose linker does not accept ELF.
            CodeTooLarge: The code would be too long.
        """
        if fingerprint().system == "Darwin":
            raise BackendError(
                f"the {self.name} back end writes ELF objects only, which macOS cannot link: "
                "export a .c file, or choose the llvm back end"
            )
        kernel = lower(contraction, nest, self.target)
        return object_code(kernel, self.emit(kernel), name)

    def toolchain(self) -> str:
        """Return the generator and the digest of its sources."""
        return f"{self.name} {digest_of(*CODE)}"


@dataclass(frozen=True)
class LlvmBackend:
    """Back end that emits LLVM IR and compiles it through llvmlite, in about ten milliseconds.

    Attributes:
        level: Target of the code; None for this machine.
        name: Name of the back end.
        types: Names of the types of elements that it has instructions for.
    """

    level: Target | None = None
    name: str = "llvm"
    types: Collection[str] = tuple(ELEMENTS)

    @property
    def target(self) -> Target:
        """Target of the code."""
        return self.level or host_target()

    def available(self) -> BackendStatus:
        """Say whether llvmlite is installed."""
        if find_spec("llvmlite") is None:
            return BackendStatus(self.name, False, "llvmlite is not installed", INSTALL_LLVM)
        return BackendStatus(self.name, True, f"{llvm.version()}, {self.target.lanes} lanes")

    def compile(
        self, contraction: Contraction, nest: Nest, part: Mapping[str, int] | None = None
    ) -> llvm.LlvmExecutable:
        """Compile a nest, or a part of it.

        Raises:
            BackendError: llvmlite is not installed.
            CodeTooLarge: The code would be too long.
        """
        kernel = lower(contraction, nest, self.target, part)
        ir = llvm_ir.emit(kernel, "kernel", repetitions=True)
        return llvm.compile(ir, "kernel", self._processor, kernel.workspace, kernel.elements)

    def object_file(self, contraction: Contraction, nest: Nest, name: str) -> bytes:
        """Return an object file of this system's format with the function `name`.

        Raises:
            BackendError: llvmlite is not installed.
            CodeTooLarge: The code would be too long.
        """
        ir = llvm_ir.emit(lower(contraction, nest, self.target), name, repetitions=False)
        return llvm.compile_object(ir, self._processor)

    def toolchain(self) -> str:
        """Return the generator, the digest of its sources, the version of LLVM and the processor.

        Raises:
            BackendError: llvmlite is not installed.
        """
        processor = self._processor
        features = hashlib.sha256(processor.features.encode()).hexdigest()[:12]
        return f"{self.name} {digest_of(*CODE)} {llvm.version()} {processor.cpu} {features}"

    @property
    def _processor(self) -> llvm.Processor:
        return llvm.processor_of(self.target)


@dataclass(frozen=True)
class ThreadedBackend:
    """Back end whose code runs on several threads, each of which computes some rows of C.

    Attributes:
        generator: Generator of the code.
        threads: Number of threads, at least 2.
    """

    generator: Generator
    threads: int

    @property
    def name(self) -> str:
        """The generator's name and the number of threads, as in `avx2:4`."""
        return f"{self.generator.name}:{self.threads}"

    @property
    def target(self) -> Target:
        """Target of the code."""
        return self.generator.target

    @property
    def types(self) -> Collection[str]:
        """Names of the types of elements that it has instructions for."""
        return self.generator.types

    def available(self) -> BackendStatus:
        """Return whether the generator runs here with several threads, and why not."""
        found, machine = self.generator.available(), fingerprint()
        if found.available and machine.architecture.lower() not in ("x86_64", "amd64"):
            return BackendStatus(
                self.name, False, f"threads are for x86-64, and this is {machine.architecture}"
            )
        detail = f"{found.detail}, {threads_text(self.threads)}"
        return BackendStatus(self.name, found.available, detail, found.remedy)

    def compile(self, contraction: Contraction, nest: Nest) -> Team:
        """Compile a nest.

        Raises:
            CodeTooLarge: The code would be too long.
        """
        rows = shares(contraction, self.threads)
        dim = rows_of(contraction)
        parts = [None if dim is None else {dim: count} for count in rows]
        kernels = [self.generator.compile(contraction, nest, part) for part in parts]
        return Team(contraction, rows, kernels)

    def object_file(self, contraction: Contraction, nest: Nest, name: str) -> bytes:
        """Raise an error: exported code has no threads.

        Raises:
            BackendError: Always.
        """
        raise BackendError(ONE_THREAD.format(name=self.generator.name))

    def toolchain(self) -> str:
        """Return the toolchain of the generator and the number of threads."""
        return f"{self.generator.toolchain()}; {threads_text(self.threads)}"


ONE_THREAD = "exported code runs on the thread that calls it: choose the back end {name}"
"""Error about exporting code with threads."""

AVX512 = MachineCodeBackend("avx512", avx512.TARGET, avx512.emit)
AVX2 = MachineCodeBackend("avx2", avx2.TARGET, avx2.emit)
LLVM = LlvmBackend()

CODE = (
    "envs/loops/checking/inputs.py",
    "envs/loops/compiling",
    "envs/loops/programs/axes.py",
    "envs/loops/programs/contraction.py",
    "envs/loops/programs/convolution.py",
    "envs/loops/programs/einsum.py",
    "envs/loops/programs/elements.py",
    "envs/loops/nest.py",
    "envs/loops/runner.py",
)
"""Sources that compile, check and time a nest, in addition to those of all environments."""

BACKENDS: tuple[Generator, ...] = (AVX512, AVX2, LLVM)
"""All back ends, the preferred first."""


@cache
def _status(candidate: Backend) -> BackendStatus:
    """Return the state of a back end, cached."""
    return candidate.available()


def preferred(target: Target | None = None, elements: str = F32.name) -> Backend:
    """Return the preferred back end that runs here and supports a target.

    Args:
        target: Target of the code, by default this machine.
        elements: Name of the types of elements.

    Raises:
        BackendError: There is none.
    """
    wanted = target or host_target()
    exact = [own for own in (AVX512, AVX2) if elements in own.types and own.target.name == wanted.name]
    for candidate in (*exact, LlvmBackend(wanted)):
        if _status(candidate).available:
            return _made_for(candidate, wanted)
    raise BackendError(
        f"no code generator of loops for {wanted.name} runs here: install the portable one, {INSTALL_LLVM}"
    )


def backend(name: str, target: Target | None = None) -> Backend:
    """Return the back end of that name.

    Args:
        name: Name, followed by the number of threads if more than one: `avx2:4`, or `:4` alone.
        target: Target of the code; by default the target of the back end, else this machine.

    Raises:
        BackendError: There is none, it does not run here, or it does not support the target.
    """
    named = {candidate.name: candidate for candidate in BACKENDS}
    plain, count = _parted(name)
    if name and not plain:
        plain = preferred(target).name
    if plain not in named:
        raise BackendError(
            f"there is no back end {name!r} in loops: choose among {', '.join(named)}, "
            "or one of them with :N for N threads"
        )
    check_threads(count)
    generator = LlvmBackend(target) if plain == LLVM.name else _made_for(named[plain], target)
    found: Backend = generator if count == 1 else ThreadedBackend(generator, count)
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


def _made_for(generator: Generator, target: Target | None) -> Generator:
    """Return a back end with the caches and cores of a target, by default of this machine."""
    if isinstance(generator, MachineCodeBackend):
        return replace(generator, target=generator.target.on(target or host_target()))
    return generator


def generator_of(contraction: Contraction, name: str | None, target: Target | None) -> Backend:
    """Return the back end of that name, by default the preferred one that has the program's instructions.

    Raises:
        BackendError: There is none, it does not run here, or it does not support the target or the program.
    """
    elements = contraction.elements.name
    found = preferred(target, elements) if name is None else backend(name, target)
    if elements not in found.types:
        raise BackendError(
            f"the back end {name} has no instructions for dtype={elements}: choose the back end {LLVM.name}"
        )
    if isinstance(found, ThreadedBackend) and any(contraction.padded):
        raise BackendError(
            f"programs with padding run on one thread: pad the input of {contraction.uri} yourself, or "
            f"choose the back end {found.generator.name}"
        )
    return found


def threads_of(name: str | None) -> int:
    """Return the number of threads in the name of a back end; 1 for None."""
    return 1 if name is None else _parted(name)[1]


def _parted(name: str) -> tuple[str, int]:
    """Split the name of a back end into the name without threads and their number."""
    match = re.fullmatch(r"(.*):([1-9]\d{0,3})", name)
    return (match[1], int(match[2])) if match else (name, 1)
