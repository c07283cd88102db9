"""LLVM IR from kernels, and its compilation through llvmlite: the portable back end and the second opinion.

A kernel already has the shape that the machine code should have, so no IR optimisation runs: LLVM only
selects instructions, schedules them and allocates registers. That keeps a compile at 5-20 ms, and loops from
being unrolled once more.
"""

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module, metadata
from types import ModuleType
from typing import Any, cast

from irgym.base.errors import BackendError
from irgym.core.target import Target
from irgym.envs.loops.compiling.kernel import (
    Block,
    Copy,
    Kernel,
    Node,
    Pack,
    Repeat,
    Tile,
)
from irgym.measure.arrays import aligned
from irgym.measure.target import host_target

OPTIMISATION_LEVEL = 1
"""LLVM's level of code generation: 1 schedules and reduces strength; 2 and 3 make no faster code here."""

PROTOTYPE = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p
)
"""Type of the compiled function: A, B, C, repetitions and workspace. Calls release the GIL."""

Pointers = tuple[str, str, str]
"""Names of the values that point into A, B and C."""


def emit(kernel: Kernel, name: str, repetitions: bool) -> str:
    """Return the textual LLVM IR of a kernel.

    Args:
        kernel: What to emit.
        name: Name of the function.
        repetitions: Whether the function takes, after the pointers to A, B and C, an int64 that says how many
            times to do the work, at least once, and a pointer to the workspace; else that is its own, one in
            each thread.
    """
    last = ", i64 %repetitions, ptr noalias %workspace" if repetitions else ""
    body = _Body(kernel)
    body.write("%repetitions" if repetitions else None)
    own = kernel.workspace and not repetitions
    return "\n".join(
        [
            *([_own_workspace(kernel)] if own else []),
            f"define void @{name}(ptr noalias %a, ptr noalias %b, ptr noalias %c{last})"
            f' nounwind "prefer-vector-width"="{32 * kernel.lanes}" {{',
            "entry:",
            *(["  %workspace = call ptr @llvm.threadlocal.address.p0(ptr @workspace)"] if own else []),
            *body.lines,
            "  ret void",
            "}",
            *_declarations(kernel.lanes),
        ]
    )


def _own_workspace(kernel: Kernel) -> str:
    return (
        f"@workspace = internal thread_local global [{kernel.workspace} x float] zeroinitializer, align 64\n"
        "declare ptr @llvm.threadlocal.address.p0(ptr)"
    )


def _declarations(lanes: int) -> list[str]:
    memory = [
        "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)",
        "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)",
    ]
    if lanes == 1:
        return [*memory, "declare float @llvm.fmuladd.f32(float, float, float)"]
    vector, mask = f"<{lanes} x float>", f"<{lanes} x i1>"
    return [
        *memory,
        f"declare {vector} @llvm.fmuladd.v{lanes}f32({vector}, {vector}, {vector})",
        f"declare {vector} @llvm.masked.load.v{lanes}f32.p0(ptr, i32, {mask}, {vector})",
        f"declare void @llvm.masked.store.v{lanes}f32.p0({vector}, ptr, i32, {mask})",
        f"declare float @llvm.vector.reduce.fadd.v{lanes}f32(float, {vector})",
    ]


class _Body:
    """The instructions of a function, in the order in which they are written.

    Attributes:
        lines: Instructions and labels so far.
        label: The basic block that is being written; the phi nodes of its successors name it.
    """

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.vector = f"<{kernel.lanes} x float>" if kernel.lanes > 1 else "float"
        self.suffix = f"v{kernel.lanes}f32" if kernel.lanes > 1 else "f32"
        self.zero = "zeroinitializer" if kernel.lanes > 1 else "0.0"
        self.lines: list[str] = []
        self.label = "entry"
        self._names = 0

    def write(self, repetitions: str | None) -> None:
        """Write the kernel, in a loop where there is a value to say how often."""
        if repetitions is None:
            self._once()
        else:
            self._loop(repetitions, [], [], lambda _: self._once())

    def _once(self) -> list[str]:
        if self.kernel.clear:
            size = 4 * self.kernel.clear
            self._line(f"call void @llvm.memset.p0.i64(ptr align 4 %c, i8 0, i64 {size}, i1 false)")
        return self._nodes(self.kernel.body, ("%a", "%b", "%c"), [])

    def _line(self, instruction: str) -> None:
        self.lines.append("  " + instruction)

    def _name(self) -> str:
        self._names += 1
        return f"%v{self._names}"

    def _value(self, expression: str) -> str:
        """Write an instruction and return the name of its result."""
        name = self._name()
        self.lines.append(f"  {name} = {expression}")
        return name

    def _at(self, pointer: str, offset: int) -> str:
        """Return a pointer moved by a number of elements."""
        return self._value(f"getelementptr float, ptr {pointer}, i64 {offset}") if offset else pointer

    def _loop(
        self,
        count: int | str,
        types: Sequence[str],
        starts: Sequence[str],
        body: Callable[[list[str]], list[str]],
    ) -> list[str]:
        """Write a loop that runs at least once.

        Args:
            count: Number of iterations, or the value that holds it.
            types: Types of the values that go round the loop.
            starts: Those values before the first iteration.
            body: Writes an iteration, from the values before it to the values after it.

        Returns:
            The values after the last iteration.
        """
        before = self.label
        loop = self._name()
        self.label = f"{loop[1:]}.body"
        self._line(f"br label %{self.label}")
        self.lines.append(f"{self.label}:")
        place = len(self.lines)
        names = [self._name() for _ in starts]
        ends = body(list(names))
        latch = self.label
        # Only now have the values that come round the loop their names.
        phis = zip((*types, "i64"), (*names, loop), (*starts, "0"), (*ends, f"{loop}.next"), strict=True)
        self.lines[place:place] = [
            f"  {name} = phi {kind} [ {start}, %{before} ], [ {end}, %{latch} ]"
            for kind, name, start, end in phis
        ]
        self._line(f"{loop}.next = add nuw nsw i64 {loop}, 1")
        self._line(f"{loop}.again = icmp ult i64 {loop}.next, {count}")
        self._line(f"br i1 {loop}.again, label {loop}.body, label {loop}.exit")
        self.label = f"{loop[1:]}.exit"
        self.lines.append(f"{self.label}:")
        return ends

    def _nodes(self, nodes: Sequence[Node], pointers: Pointers, sums: list[str]) -> list[str]:
        """Write nodes one after the other and return the values of the accumulators after them."""
        for node in nodes:
            match node:
                case Block():
                    sums = self._block(node, pointers, sums)
                case Repeat():
                    sums = self._repeat(node, pointers, sums)
                case Tile():
                    self._tile(node, pointers)
                case Pack():
                    self._pack(node, pointers)
                case Copy():
                    self._copy(node, pointers)
        return sums

    def _pack(self, pack: Pack, pointers: Pointers) -> None:
        copy = self._at("%workspace", pack.place)
        self._nodes(pack.copy, (pointers[0], pointers[1], copy), [])
        a, b = (copy if place == pack.operand else pointers[place] for place in range(2))
        self._nodes(pack.body, (a, b, pointers[2]), [])

    def _copy(self, copy: Copy, pointers: Pointers) -> None:
        for offset in copy.prefetched:
            place = self._at(pointers[copy.operand], offset)
            self._line(f"call void @llvm.prefetch.p0(ptr {place}, i32 0, i32 2, i32 1)")
        for source, destination, lanes, width in copy.moves:
            value = self._load(self._at(pointers[copy.operand], source), lanes)
            self._store(value, self._at(pointers[2], destination), width)

    def _repeat(self, repeat: Repeat, pointers: Pointers, sums: list[str]) -> list[str]:
        def iteration(values: list[str]) -> list[str]:
            a, b, c, *inside = values
            after = self._nodes(repeat.body, (a, b, c), inside)
            moved = [
                self._at(pointer, stride) for pointer, stride in zip((a, b, c), repeat.strides, strict=True)
            ]
            return [*moved, *after]

        types = [*["ptr"] * 3, *[self.vector] * len(sums)]
        return self._loop(repeat.count, types, [*pointers, *sums], iteration)[3:]

    def _tile(self, tile: Tile, pointers: Pointers) -> None:
        sums = self._nodes(tile.body, pointers, [self.zero] * len(tile.accumulators))
        for part, value in zip(tile.accumulators, sums, strict=True):
            place = self._at(pointers[2], part.c)
            if self.kernel.sum_lanes:
                self._store_sum(value, place, tile.add)
            elif tile.add:
                before = self._load(place, part.lanes)
                total = self._value(f"fadd {self.vector} {before}, {value}")
                self._store(total, place, part.lanes)
            else:
                self._store(value, place, part.lanes)

    def _block(self, block: Block, pointers: Pointers, sums: list[str]) -> list[str]:
        loaded: dict[tuple[str, int, int], str] = {}

        def operand(pointer: str, offset: int, lanes: int, vector: bool) -> str:
            key = pointer, offset, lanes
            if key not in loaded:
                place = self._at(pointer, offset)
                loaded[key] = self._load(place, lanes) if vector else self._broadcast(place, lanes)
            return loaded[key]

        sums = list(sums)
        for index, a, b, lanes in block.fmas:
            left = operand(pointers[0], a, lanes, self.kernel.a_vector)
            right = operand(pointers[1], b, lanes, self.kernel.b_vector)
            terms = f"{self.vector} {left}, {self.vector} {right}, {self.vector} {sums[index]}"
            sums[index] = self._value(f"call {self.vector} @llvm.fmuladd.{self.suffix}({terms})")
        return sums

    def _mask(self, lanes: int) -> str:
        bits = ", ".join("i1 1" if lane < lanes else "i1 0" for lane in range(self.kernel.lanes))
        return f"<{self.kernel.lanes} x i1> <{bits}>"

    def _load(self, place: str, lanes: int) -> str:
        """Load consecutive elements; the other lanes are zero."""
        if lanes == self.kernel.lanes:
            return self._value(f"load {self.vector}, ptr {place}, align 4")
        return self._value(
            f"call {self.vector} @llvm.masked.load.{self.suffix}.p0(ptr {place}, i32 4, "
            f"{self._mask(lanes)}, {self.vector} zeroinitializer)"
        )

    def _broadcast(self, place: str, lanes: int) -> str:
        """Load one element into all lanes; where lanes are added up, those that take no part are zero."""
        element = self._value(f"load float, ptr {place}, align 4")
        width = self.kernel.lanes
        if width == 1:
            return element
        single = self._value(f"insertelement {self.vector} poison, float {element}, i32 0")
        used = lanes if self.kernel.sum_lanes else width
        picks = ", ".join("i32 0" if lane < used else f"i32 {width}" for lane in range(width))
        return self._value(
            f"shufflevector {self.vector} {single}, {self.vector} zeroinitializer, <{width} x i32> <{picks}>"
        )

    def _store(self, value: str, place: str, lanes: int) -> None:
        if lanes == self.kernel.lanes:
            self._line(f"store {self.vector} {value}, ptr {place}, align 4")
        else:
            self._line(
                f"call void @llvm.masked.store.{self.suffix}.p0({self.vector} {value}, ptr {place}, i32 4, "
                f"{self._mask(lanes)})"
            )

    def _store_sum(self, value: str, place: str, add: bool) -> None:
        """Add up the lanes, and what the element of C holds where `add` is set, and store the sum."""
        start = self._value(f"load float, ptr {place}, align 4") if add else "0.0"
        total = self._value(
            f"call reassoc float @llvm.vector.reduce.fadd.{self.suffix}(float {start}, {self.vector} {value})"
        )
        self._line(f"store float {total}, ptr {place}, align 4")


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
    except RuntimeError:  # LLVM knows no way to ask this processor
        features = ""
    return Processor(llvm.get_host_cpu_name(), features)


def processor_of(target: Target) -> Processor:
    """Return what LLVM makes code for: this very processor where the target is this machine, else its level.

    Raises:
        BackendError: llvmlite is not installed.
    """
    # LLVM's names of x86-64's levels are ours; code for other architectures is not made here.
    return host() if target.name == host_target().name else Processor(target.name, "")


def version() -> str:
    """Return the versions of llvmlite and LLVM, as in `llvmlite 0.50.0 LLVM 22.1.0`.

    Raises:
        BackendError: llvmlite is not installed.
    """
    llvm = binding()
    return f"llvmlite {metadata.version('llvmlite')} LLVM {'.'.join(map(str, llvm.llvm_version_info))}"


def _machine(processor: Processor, jit: bool) -> Any:
    """Return a new target machine; an execution engine takes the one that it gets for its own."""
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
        code: None: LLVM keeps the machine code to itself.
        address: Where it begins.
        workspace: Address of the workspace.
    """

    code: bytes | None = None

    def __init__(self, engine: Any, name: str, workspace: int) -> None:
        self._engine = engine
        self.address = int(engine.get_function_address(name))
        self._function = PROTOTYPE(self.address)
        self._workspace = aligned((workspace,))
        self.workspace = int(self._workspace.ctypes.data)

    def run(self, a: int, b: int, c: int, repetitions: int) -> None:
        """Run the kernel `repetitions` times (at least once) on the tensors at these addresses."""
        self._function(a, b, c, repetitions, self.workspace)

    def close(self) -> None:
        """Free the machine code; `run` must not be called any more. Closing twice does nothing."""
        self._engine.close()


def compile(ir: str, name: str, processor: Processor, workspace: int) -> LlvmExecutable:
    """Compile IR that `emit` wrote with repetitions.

    Args:
        ir: Textual LLVM IR.
        name: Name of the function in it.
        workspace: Elements of its workspace.
        processor: What to make code for; this one must run it.

    Raises:
        BackendError: llvmlite is not installed.
    """
    llvm = binding()
    engine: Any = llvm.create_mcjit_compiler(llvm.parse_assembly(ir), _machine(processor, jit=True))
    engine.finalize_object()
    return LlvmExecutable(engine, name, workspace)


def compile_object(ir: str, processor: Processor) -> bytes:
    """Compile IR for a processor into a relocatable object file of the host's format.

    Raises:
        BackendError: llvmlite is not installed.
    """
    return cast(bytes, _machine(processor, jit=False).emit_object(binding().parse_assembly(ir)))
