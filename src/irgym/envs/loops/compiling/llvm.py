"""Compilation of LLVM IR through llvmlite: the portable back end, and a check of the others.

No IR optimisation runs: LLVM only selects instructions, schedules them and allocates registers. So a
compilation takes 5-20 ms, and LLVM unrolls no loop again.
"""

from dataclasses import dataclass
from functools import cache
from importlib import import_module, metadata
from types import ModuleType
from typing import Any, cast

import numpy as np

from irgym.base.errors import BackendError
from irgym.core.target import Target
from irgym.envs.loops.compiling.executable import PROTOTYPE
from irgym.envs.loops.programs.elements import F32, Elements
from irgym.measure.arrays import aligned
from irgym.measure.target import host_target

OPTIMISATION_LEVEL = 1
"""LLVM's level of code generation: 1 schedules and reduces strength; 2 and 3 make no faster code here."""


@dataclass(frozen=True)
class Processor:
    """A processor as LLVM names it.

    Attributes:
        cpu: Its name, such as `znver4`.
        features: Comma-separated features, each with + or -; empty where LLVM cannot tell.
    """

    cpu: str
    features: str


@cache
def binding() -> ModuleType:
    """Import llvmlite and prepare it for this processor.

    Raises:
        BackendError: llvmlite is not installed.
    """
    try:
        llvm = import_module("llvmlite.binding")
    except ImportError:
        raise BackendError(
            "the llvm back end needs llvmlite: install it with pip install 'irgym[loops]'"
        ) from None
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm


@cache
def host() -> Processor:
    """Return this processor as LLVM sees it.

    Raises:
        BackendError: llvmlite is not installed.
    """
    llvm = binding()
    try:
        features: str = llvm.get_host_cpu_features().flatten()
    except RuntimeError:  # LLVM cannot query this processor
        features = ""
    return Processor(llvm.get_host_cpu_name(), features)


def processor_of(target: Target) -> Processor:
    """Return the processor that LLVM compiles for: this one if the target is this machine, else its level.

    Raises:
        BackendError: llvmlite is not installed.
    """
    # LLVM names x86-64's levels as we do; other architectures have no levels.
    return host() if target.name == host_target().name else Processor(target.name, "")


def version() -> str:
    """Return the versions of llvmlite and LLVM, as in `llvmlite 0.50.0 LLVM 22.1.0`.

    Raises:
        BackendError: llvmlite is not installed.
    """
    llvm = binding()
    return f"llvmlite {metadata.version('llvmlite')} LLVM {'.'.join(map(str, llvm.llvm_version_info))}"


def _machine(processor: Processor, jit: bool) -> Any:
    """Return a new target machine; an execution engine takes over the one that it is given."""
    return (
        binding()
        .Target.from_default_triple()
        .create_target_machine(
            cpu=processor.cpu,
            features=processor.features,
            opt=OPTIMISATION_LEVEL,
            reloc="pic",
            codemodel="jitdefault" if jit else "default",
            jit=jit,
        )
    )


class LlvmExecutable:
    """A compiled function in memory, until it is closed.

    Attributes:
        code: Always None: LLVM does not give the machine code away.
        address: Address of the function.
        workspace: Address of the workspace.
    """

    code: bytes | None = None

    def __init__(self, engine: Any, name: str, workspace: int, elements: Elements) -> None:
        self._engine = engine
        self.address = int(engine.get_function_address(name))
        self._function = PROTOTYPE(self.address)
        self._workspace = aligned((elements.bytes * workspace,), np.uint8)
        self.workspace = int(self._workspace.ctypes.data)

    def run(self, a: int, b: int, c: int, repetitions: int) -> None:
        """Run the kernel `repetitions` times (at least once) on the tensors at these addresses."""
        self._function(a, b, c, repetitions, self.workspace)

    def close(self) -> None:
        """Free the machine code; `run` must not be called after it. Closing twice has no effect."""
        self._engine.close()


def compile(
    ir: str, name: str, processor: Processor, workspace: int, elements: Elements = F32
) -> LlvmExecutable:
    """Compile IR that `llvm_ir.emit` wrote with repetitions.

    Args:
        ir: Textual LLVM IR.
        name: Name of the function in it.
        workspace: Elements of its workspace.
        processor: Processor to compile for; this one must run its code.
        elements: Types of its elements.

    Raises:
        BackendError: llvmlite is not installed.
    """
    llvm = binding()
    engine: Any = llvm.create_mcjit_compiler(llvm.parse_assembly(ir), _machine(processor, jit=True))
    engine.finalize_object()
    return LlvmExecutable(engine, name, workspace, elements)


def compile_object(ir: str, processor: Processor) -> bytes:
    """Compile IR for a processor into a relocatable object file of the host's format.

    Raises:
        BackendError: llvmlite is not installed.
    """
    return cast(bytes, _machine(processor, jit=False).emit_object(binding().parse_assembly(ir)))
