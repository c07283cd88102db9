"""Peak float32 throughput of one core, measured by independent chains of fused multiply-adds.

A fused multiply-add takes 4 or 5 cycles and a core starts up to two in each cycle, so that 8 to 10
independent chains keep it busy; more chains hide other delays of single instructions.
"""

import ctypes
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from irgym.core.target import Target
from irgym.measure.machine import timing_slot
from irgym.measure.native import ExecutableBuffer
from irgym.measure.target import host_target

_LOOP_FMAS = 192  # multiply-adds in one iteration, so that the loop itself costs nothing
_RUN_NS = 1_000_000  # length of one run; the best of many is the peak


@dataclass(frozen=True)
class Peak:
    """Peak throughput.

    Attributes:
        gflops: 10^9 float32 operations a second, on one core; a multiply-add counts as two.
        method: Description of the measurement, or of the estimate.
    """

    gflops: float
    method: str


@dataclass(frozen=True)
class PeakKernel:
    """A computation whose throughput is measured.

    Attributes:
        run: Runs the given number of iterations.
        flops: Operations in an iteration.
        method: Description of the computation.
    """

    run: Callable[[int], object]
    flops: int
    method: str


def measure_peak(seconds: float = 0.1, target: Target | None = None) -> Peak:
    """Measure the peak of the core that this process runs on.

    Args:
        seconds: Measuring time; the best of many short runs counts.
        target: Target whose instructions are used; by default this machine's widest.
    """
    with peak_kernel(target or host_target()) as kernel, timing_slot():
        iterations = 16
        while (elapsed := _elapsed_ns(kernel, iterations)) < _RUN_NS / 4:
            iterations *= 2
        iterations = max(1, round(iterations * _RUN_NS / elapsed))
        deadline = time.perf_counter() + seconds
        best = _elapsed_ns(kernel, iterations)
        while time.perf_counter() < deadline:
            best = min(best, _elapsed_ns(kernel, iterations))
    return Peak(kernel.flops * iterations / best, kernel.method)


def _elapsed_ns(kernel: PeakKernel, iterations: int) -> int:
    begin = time.perf_counter_ns()
    kernel.run(iterations)
    return time.perf_counter_ns() - begin


@contextmanager
def peak_kernel(target: Target) -> Generator[PeakKernel, None, None]:
    """Provide the code that reaches the CPU's peak with a target's instructions."""
    if "avx512f" in target.features:
        chains, lanes, name, code = 24, 16, "AVX-512", avx512_code()
    elif {"avx2", "fma"} <= set(target.features):
        chains, lanes, name, code = 12, 8, "AVX2", avx2_code()
    else:
        with _portable_kernel(target) as kernel:
            yield kernel
        return
    with ExecutableBuffer(code) as buffer:
        run = ctypes.CFUNCTYPE(None, ctypes.c_uint64)(buffer.address)
        yield PeakKernel(run, 2 * lanes * _LOOP_FMAS, f"{name} multiply-adds, {chains} independent chains")


# The functions below follow the System V calling convention: the first argument, the number of iterations, is
# in rdi; all vector registers may be overwritten.
_DEC_RDI = bytes.fromhex("48ffcf")
_JNZ = bytes.fromhex("0f85")  # followed by the distance as 32 bits, from the end of the instruction
_VZEROUPPER = bytes.fromhex("c5f877")
_RET = bytes.fromhex("c3")


def avx512_code() -> bytes:
    """Return machine code: `_LOOP_FMAS` multiply-adds of 16 lanes an iteration, on 24 accumulators."""
    # Earlier register contents could be denormal or NaN, which are slow on some CPUs.
    clear = b"".join(_evex(1, 0xEF, register, register, register) for register in range(32))  # vpxord
    body = b"".join(_evex(2, 0xB8, place % 24, 30, 31) for place in range(_LOOP_FMAS))  # vfmadd231ps
    return clear + _loop(body) + _VZEROUPPER + _RET


def avx2_code() -> bytes:
    """Return machine code: `_LOOP_FMAS` multiply-adds of 8 lanes an iteration, on 12 accumulators."""
    clear = b"".join(_vex(1, 0, 0x57, register, register, register) for register in range(16))  # vxorps
    body = b"".join(_vex(2, 1, 0xB8, place % 12, 14, 15) for place in range(_LOOP_FMAS))  # vfmadd231ps
    return clear + _loop(body) + _VZEROUPPER + _RET


def _loop(body: bytes) -> bytes:
    back = -(len(body) + len(_DEC_RDI) + len(_JNZ) + 4)
    return body + _DEC_RDI + _JNZ + back.to_bytes(4, "little", signed=True)


def _evex(opcode_map: int, opcode: int, target: int, left: int, right: int) -> bytes:
    """Encode an AVX-512 instruction on zmm registers 0 to 31, with prefix 66 and W=0 (Intel SDM 2.7)."""
    # The upper register bits are stored inverted.
    p0 = (~target >> 3 & 1) << 7 | (~right >> 4 & 1) << 6 | (~right >> 3 & 1) << 5 | (~target >> 4 & 1) << 4
    p1 = (~left & 15) << 3 | 1 << 2 | 0b01
    p2 = 0b10 << 5 | (~left >> 4 & 1) << 3
    return bytes((0x62, p0 | opcode_map, p1, p2, opcode, 0xC0 | (target & 7) << 3 | right & 7))


def _vex(opcode_map: int, prefix: int, opcode: int, target: int, left: int, right: int) -> bytes:
    """Encode an AVX instruction on ymm registers 0 to 15, W=0; `prefix` 1 stands for 66 (Intel SDM 2.3)."""
    byte1 = (~target >> 3 & 1) << 7 | 1 << 6 | (~right >> 3 & 1) << 5 | opcode_map
    byte2 = (~left & 15) << 3 | 1 << 2 | prefix
    return bytes((0xC4, byte1, byte2, opcode, 0xC0 | (target & 7) << 3 | right & 7))


@contextmanager
def _portable_kernel(target: Target) -> Generator[PeakKernel, None, None]:
    """Provide chains compiled by LLVM if llvmlite is installed, else numpy's matmul."""
    try:
        llvm: Any = import_module("llvmlite.binding")
    except ImportError:
        yield _matmul_kernel()
        return
    with _llvm_kernel(llvm, target) as kernel:
        yield kernel


_LLVM_CHAINS, _LLVM_LANES = 24, 4


def llvm_ir() -> str:
    """Return LLVM IR of the chains: `float peak(i64 iterations, float a, float b)`."""
    vector = f"<{_LLVM_LANES} x float>"
    name = f"@llvm.fmuladd.v{_LLVM_LANES}f32"
    chains, rounds = range(_LLVM_CHAINS), _LOOP_FMAS // _LLVM_CHAINS
    starts = [
        f"%x{chain}_0 = phi {vector} [zeroinitializer, %entry], [%x{chain}_{rounds}, %loop]"
        for chain in chains
    ]
    steps = [
        f"%x{chain}_{step + 1} = call {vector} {name}({vector} %as, {vector} %bs, {vector} %x{chain}_{step})"
        for step in range(rounds)
        for chain in chains
    ]
    # The result depends on every chain, so that none is optimised away.
    sums = [f"%sum{chain + 1} = fadd {vector} %sum{chain}, %x{chain}_{rounds}" for chain in chains]
    return "\n".join(
        [
            f"declare {vector} {name}({vector}, {vector}, {vector})",
            "define float @peak(i64 %iterations, float %a, float %b) {",
            "entry:",
            f"%as = insertelement {vector} zeroinitializer, float %a, i32 0",
            f"%bs = insertelement {vector} zeroinitializer, float %b, i32 0",
            "br label %loop",
            "loop:",
            "%count = phi i64 [%iterations, %entry], [%left, %loop]",
            *starts,
            *steps,
            "%left = sub i64 %count, 1",
            "%more = icmp ne i64 %left, 0",
            "br i1 %more, label %loop, label %done",
            "done:",
            f"%sum0 = fadd {vector} zeroinitializer, zeroinitializer",
            *sums,
            f"%result = extractelement {vector} %sum{_LLVM_CHAINS}, i32 0",
            "ret float %result",
            "}",
        ]
    )


@contextmanager
def _llvm_kernel(llvm: Any, target: Target) -> Generator[PeakKernel, None, None]:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    here = target.name == host_target().name
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name() if here else target.name,
        features=llvm.get_host_cpu_features().flatten() if here else "",
        opt=2,
    )
    with llvm.create_mcjit_compiler(llvm.parse_assembly(llvm_ir()), machine) as engine:
        engine.finalize_object()
        function = ctypes.CFUNCTYPE(ctypes.c_float, ctypes.c_uint64, ctypes.c_float, ctypes.c_float)(
            engine.get_function_address("peak")
        )
        yield PeakKernel(
            lambda iterations: function(iterations, 0.0, 0.0),
            2 * _LLVM_LANES * _LOOP_FMAS,
            f"multiply-adds compiled by LLVM, {_LLVM_CHAINS} independent chains of {_LLVM_LANES} lanes",
        )


def _matmul_kernel(size: int = 256) -> PeakKernel:
    a = np.ones((size, size), np.float32)
    out = np.empty_like(a)

    def run(iterations: int) -> None:
        for _ in range(iterations):
            np.matmul(a, a, out=out)

    return PeakKernel(run, 2 * size**3, "estimate from numpy's matmul: install irgym[loops] to measure it")
