"""Store and pool: a crash costs one request only; sizes of code; the names of passes."""

from pathlib import Path

import pytest

from irgym.base.errors import BackendError, ProgramError
from irgym.core.cost import Call
from irgym.envs.llvm.actions import KIND, PASSES, passes_of
from irgym.envs.llvm.compiling.installed import llvm_named
from irgym.envs.llvm.compiling.pool import LIMITS
from irgym.envs.llvm.compiling.sections import text_bytes
from irgym.envs.llvm.compiling.store import Request, Summary
from irgym.envs.llvm.environment import LLVM
from irgym.measure.isolation.child import Child
from irgym.measure.isolation.protocol import Returned
from irgym.measure.passes.pool import PassPool
from irgym.measure.passes.store import Failure

BACKEND = "llvm-23"


def test_an_abort_costs_its_own_request_only(files, monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    processes = PassPool[Request, Summary]("aborting_store", "LLVM", LIMITS, 1)
    names = ("sroa", "gvn", "default-o2")
    try:
        first, failed, last = processes.step(
            [Request(str(files["sum"]), (), KIND[name], BACKEND) for name in names]
        )
    finally:
        processes.close()
    assert isinstance(first, Summary) and isinstance(last, Summary)
    assert isinstance(failed, Failure) and "planted" in failed.reason


def test_functions_left_out_and_copies_make_no_difference(files, monkeypatch):
    """Hashes tell modules apart as bitcode does, and are equal where it is."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    programs = [*files.values(), *(LLVM.task(uri).modules.path for uri in LLVM.dataset("kernels").test)]
    child = Child(LIMITS)
    try:
        for seed, program in enumerate(programs):
            reply = child.call(Call("hashed_orders:differences", (str(program), seed, 12)))
            assert isinstance(reply, Returned), reply
            assert reply.value == [], program
    finally:
        child.close()


def test_machine_code_is_smaller_after_o2(files, pool):
    sizes = [
        text_bytes(pool.call("code", str(files["sum"]), path, BACKEND))
        for path in ((), (KIND["default-o2"],))
    ]
    assert 0 < sizes[1] < sizes[0]
    with pytest.raises(ProgramError, match="64-bit ELF files alone"):
        text_bytes(b"MZ")


def test_passes_at_once_are_told_only_where_they_come_to_the_same(files, pool):
    path = (KIND["sroa"], KIND["instcombine"])
    told = pool.call("at_once", str(files["sum"]), path, BACKEND)
    assert told in ("", "function(sroa),function(instcombine<no-verify-fixpoint>)")


def test_older_releases_have_a_pipeline_of_their_own_for_size():
    assert passes_of(KIND["default-oz"], 23) == "" and passes_of(KIND["default-oz"], 19) == "default<Oz>"
    assert len({action.name for action in PASSES}) == len(PASSES)


def test_an_unknown_back_end_is_refused():
    with pytest.raises(BackendError, match="choose among llvm-23, llvm-19"):
        llvm_named("llvm-7")
