import ctypes
import importlib.util
import platform
import sys
import time

import pytest

from irgym.core.cost import Call
from irgym.core.target import LEVELS, X86_64_V3, X86_64_V4
from irgym.measure import peak
from irgym.measure.isolation.child import Child, Returned
from irgym.measure.machine import fingerprint
from irgym.measure.native import ExecutableBuffer
from irgym.measure.peak import Peak, measure_peak
from irgym.measure.target import host_target

pytestmark = pytest.mark.timed
FEATURES = fingerprint().features if platform.machine() in ("x86_64", "AMD64") else frozenset()
NARROW = next(level for level in reversed(LEVELS) if level.architecture == host_target().architecture)
avx512 = pytest.mark.skipif("avx512f" not in FEATURES, reason="needs AVX-512")
avx2 = pytest.mark.skipif(not {"avx2", "fma"} <= FEATURES, reason="needs AVX2 and FMA")
llvm = pytest.mark.skipif(importlib.util.find_spec("llvmlite") is None, reason="needs llvmlite")


def test_the_peak_of_this_machine_from_a_child():
    with Child() as child:
        reply = child.call(Call("irgym.measure.peak:measure_peak", (0.02,)))
    assert isinstance(reply, Returned)
    assert isinstance(reply.value, Peak)
    assert 1 < reply.value.gflops < 2000


@avx512
@avx2
def test_wider_vectors_have_a_higher_peak():
    peaks = [
        max((measure_peak(0.02, target) for _ in range(3)), key=lambda peak: peak.gflops)
        for target in (X86_64_V4, X86_64_V3)
    ]
    assert "AVX-512" in peaks[0].method
    assert "AVX2" in peaks[1].method
    assert peaks[0].gflops > 0.8 * peaks[1].gflops


@llvm
def test_a_cpu_without_its_own_kernel_uses_llvm():
    result = measure_peak(0.02, NARROW)
    assert "LLVM" in result.method
    assert result.gflops > 1


def test_without_llvm_the_peak_is_called_an_estimate(monkeypatch):
    monkeypatch.setitem(sys.modules, "llvmlite.binding", None)
    result = measure_peak(0.02, NARROW)
    assert "estimate" in result.method
    assert result.gflops > 0.1


@avx512
def test_evex_encoding():
    # Reference encodings from an assembler: vfmadd231ps zmm0/zmm23, zmm30, zmm31; vpxord zmm17, zmm17, zmm17.
    assert peak._evex(2, 0xB8, 0, 30, 31) == bytes.fromhex("62920d40b8c7")
    assert peak._evex(2, 0xB8, 23, 30, 31) == bytes.fromhex("62820d40b8ff")
    assert peak._evex(1, 0xEF, 17, 17, 17) == bytes.fromhex("62a17540efc9")


def test_vex_encoding():
    # vfmadd231ps ymm11, ymm14, ymm15; vxorps ymm3, ymm3, ymm3.
    assert peak._vex(2, 1, 0xB8, 11, 14, 15) == bytes.fromhex("c4420db8df")
    assert peak._vex(1, 0, 0x57, 3, 3, 3) == bytes.fromhex("c4e16457db")


@pytest.mark.parametrize(
    "code",
    [
        pytest.param(peak.avx512_code, marks=avx512, id="avx512"),
        pytest.param(peak.avx2_code, marks=avx2, id="avx2"),
    ],
)
def test_the_code_takes_time_in_proportion_to_its_iterations(code):
    def elapsed(iterations):
        begin = time.perf_counter_ns()
        run(iterations)
        return time.perf_counter_ns() - begin

    with ExecutableBuffer(code()) as buffer:
        run = ctypes.CFUNCTYPE(None, ctypes.c_uint64)(buffer.address)
        short, long = (min(elapsed(count) for _ in range(20)) for count in (2_000, 8_000))
    assert 3 < long / short < 5
