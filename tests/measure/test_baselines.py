"""Baselines for a smaller target use only its instructions."""

from pathlib import Path

import pytest

from irgym.core.cost import Call
from irgym.core.target import X86_64_V3
from irgym.measure.baselines import held_to
from irgym.measure.farm.local import LocalFarm
from irgym.measure.isolation.protocol import Limits, Returned
from irgym.measure.target import host_target

KERNELS = "irgym.measure.baselines:numpy_kernels"
FLAGS = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""


def test_nothing_holds_back_on_the_machine_itself():
    assert held_to(host_target()) == ()


@pytest.mark.skipif("avx512f" not in FLAGS, reason="needs AVX-512")
def test_numpy_has_avx2_kernels_for_avx2():
    with LocalFarm(limits=Limits()) as farm:
        held = farm.call(Call(KERNELS, (), held_to(X86_64_V3)))
        free = farm.call(Call(KERNELS))
    assert isinstance(held, Returned) and isinstance(free, Returned)
    if "openblas" not in free.value:
        pytest.skip("numpy has another BLAS")
    assert "on Haswell kernels" in held.value and "Haswell" not in free.value
