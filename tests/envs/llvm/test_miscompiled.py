"""A pass of LLVM that is wrong: the attributor of 23.1.4 takes a loop's variable for its first value."""

import pytest

from irgym.core.cost import Call
from irgym.envs.llvm.actions import PASSES
from irgym.envs.llvm.checking.validation import compared
from irgym.envs.llvm.environment import LLVM
from irgym.measure.isolation.child import Child
from irgym.measure.isolation.protocol import Limits, Returned


@pytest.mark.parametrize(("passes", "right"), [("attributor", False), ("default<O2>", True)])
def test_what_llvm_miscompiles_is_found(passes: str, right: bool):
    file = LLVM.task("llvm://kernels/signals.c").modules.file
    with Child(Limits(timeout_s=60.0)) as child:
        reply = child.call(Call("llvm_bitcode:around", (file, passes)))
    assert isinstance(reply, Returned), reply
    found = compared(*reply.value, inputs=1, seed=0)
    assert found.ok == right
    assert right or "compare_numbers" in found.detail
    assert not any(passes == action.passes for action in PASSES if not right)
