"""Passes of LLVM 23.1.4 that are wrong.

The attributor takes a loop's variable for its first value; newgvn drops a store in a loop.
"""

import pytest

from irgym.core.cost import Call
from irgym.envs.llvm.actions import PASSES
from irgym.envs.llvm.checking.validation import compared
from irgym.envs.llvm.environment import LLVM
from irgym.measure.isolation.child import Child
from irgym.measure.isolation.protocol import Limits, Returned


@pytest.mark.parametrize(
    ("passes", "wrong"),
    [
        ("attributor", "compare_numbers"),
        ("function(gvn,dse,newgvn)", "multiply_numbers"),
        ("function(gvn,dse)", ""),
        ("default<O2>", ""),
    ],
)
def test_what_llvm_miscompiles_is_found(passes: str, wrong: str):
    file = LLVM.task("llvm://kernels/signals.c").modules.file
    with Child(Limits(timeout_s=60.0)) as child:
        reply = child.call(Call("llvm_bitcode:around", (file, passes)))
    assert isinstance(reply, Returned), reply
    found = compared(*reply.value, inputs=1, seed=0)
    assert found.ok == (not wrong)
    assert wrong in found.detail


@pytest.mark.parametrize("wrong", ["attributor", "newgvn"])
def test_what_is_wrong_is_no_action(wrong: str):
    assert not any(wrong in action.passes for action in PASSES)
