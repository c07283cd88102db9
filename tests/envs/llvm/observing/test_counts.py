import numpy as np
import pytest
from llvm_by_hand import by_hand
from llvm_modules import observed, refused

from irgym.envs.llvm.observing.counts import (
    AUTOPHASE,
    INST_COUNT,
    LAYOUT,
    OPERANDS,
    PREDICATES,
    SIZE,
    TOTALS,
    autophase,
    inst_count,
    inst_count_norm,
    part,
)
from irgym.envs.llvm.observing.opcodes import NUMBERS

TARGET = b'target triple = "x86_64-unknown-linux-gnu"\n'
PASSES = (
    "instnamer",
    "mem2reg,instcombine<no-verify-fixpoint>,simplifycfg,instnamer",
    "default<O3>,instnamer",
)


def read(counts):
    return np.frombuffer(counts, dtype=np.int32)


def named(counts):
    """All values by the names of `by_hand`."""
    found = dict(zip(AUTOPHASE, autophase(counts).tolist(), strict=True))
    found |= dict(zip(INST_COUNT, inst_count(counts).tolist(), strict=True))
    for name, known in (("operands", OPERANDS), ("predicates", PREDICATES)):
        found |= dict(zip(known, part(counts, name).tolist(), strict=True))
    return {by_hand_name(name): value for name, value in found.items()}


def by_hand_name(name):
    if name.startswith("Num") and name.endswith("Inst"):
        return name[3:-4].lower()
    special = {"BranchCount": "br", "VAArg": "va_arg"}
    return special.get(name, name.lower() if name in NUMBERS else name)


def test_names_are_compilergyms():
    assert len(INST_COUNT) == len({*INST_COUNT}) == 70
    assert len(AUTOPHASE) == len({*AUTOPHASE}) == 56
    assert (
        INST_COUNT[:5] == ("TotalInsts", "TotalBlocks", "TotalFuncs", "Ret", "Br")
        and INST_COUNT[-1] == "Freeze"
    )
    # Places that CompilerGym's documentation gives.
    places = {
        "onePred": 2,
        "BeginPhi": 14,
        "returnInt": 16,
        "UncondBranches": 23,
        "BlockLow": 30,
        "testUnary": 55,
    }
    assert {name: AUTOPHASE.index(name) for name in places} == places
    places = {"CallBr": 13, "Alloca": 33, "BitCast": 51, "PHI": 57, "LandingPad": 68}
    assert {name: INST_COUNT.index(name) for name in places} == places


@pytest.mark.parametrize("name", ["sorting", "signals"])
@pytest.mark.parametrize("passes", PASSES)
def test_counts_are_those_by_hand(llvm, sources, name, passes):
    seen = llvm.submit(observed, sources[name], passes).result()["first"]
    expected = by_hand(seen.text)
    found = named(read(seen.counts))
    assert found == {name: expected[name] for name in found}
    assert sum(value > 0 for value in found.values()) > 45


def test_counts_of_a_small_module(llvm, small):
    counts = read(llvm.submit(observed, small).result()["first"].counts)
    features = dict(zip(AUTOPHASE, autophase(counts).tolist(), strict=True))
    expected = {
        **{"TotalInsts": 13, "TotalBlocks": 6, "TotalFuncs": 3, "NumEdges": 6, "CriticalCount": 4},
        # 3, 1, -2, 0, 1, 2 in f, the last three of which phi takes, and 0 in h; 1 as i128.
        **{"const32Bit": 7, "const64Bit": 0, "numConstZeroes": 2, "numConstOnes": 3},
        # Calls of g and f, not that through a pointer.
        **{"returnInt": 2, "UncondBranches": 1, "NumBrInst": 2, "ArgsPhi": 3, "BBNumArgsLo": 1},
        **{"twoPred": 1, "morePreds": 1, "onePred": 1, "TotalMemInst": 4},
    }
    assert {name: features[name] for name in expected} == expected


def test_counts_of_rare_instructions(llvm, rare):
    counts = read(llvm.submit(observed, rare).result()["first"].counts)
    features = dict(zip(AUTOPHASE, autophase(counts).tolist(), strict=True))
    expected = {
        **{"TotalInsts": 30, "TotalBlocks": 13, "TotalFuncs": 10, "NumCallInst": 4, "TotalMemInst": 7},
        # Three edges each of a switch and of an indirect branch; edges to one block count one by one.
        **{"NumEdges": 13, "CriticalCount": 6, "twoSuccessor": 2, "BranchCount": 2, "UncondBranches": 2},
        # Neither vectors nor integers of 128 bits whose lowest 64 are 1.
        **{"numConstOnes": 8, "numConstZeroes": 5, "const32Bit": 10, "const64Bit": 1},
        # Not the call whose type is another than the function's.
        **{"returnInt": 1, "binaryConstArg": 2, "testUnary": 2},
    }
    assert {name: features[name] for name in expected} == expected
    values = dict(zip(INST_COUNT, inst_count(counts).tolist(), strict=True))
    once = ("Invoke", "CallBr", "IndirectBr", "LandingPad", "Resume", "Fence", "AtomicRMW", "AtomicCmpXchg")
    assert [values[name] for name in once] == [1] * len(once)


def test_ir2vec_leaves_out_blocks_that_nothing_leads_to(llvm, small):
    counts = read(llvm.submit(observed, small).result()["first"].counts)
    assert part(counts, "opcodes").sum() == 13 and part(counts, "reachable").sum() == 11
    assert part(counts, "predicates").sum() == 1 and part(counts, "types").sum() == 11


@pytest.mark.parametrize("other", ["second", "clone", "reread"])
def test_equal_modules_have_equal_counts(llvm, sources, other):
    seen = llvm.submit(observed, sources["signals"], "default<O3>").result()
    assert seen[other].counts == seen["first"].counts
    assert len(seen["first"].counts) == 4 * SIZE


def test_sections_are_consistent(llvm, sources):
    counts = read(llvm.submit(observed, sources["sorting"], "default<O2>").result()["first"].counts)
    values = dict(zip(INST_COUNT, inst_count(counts).tolist(), strict=True))
    assert sum(values[name] for name in NUMBERS) == values["TotalInsts"]
    norm = inst_count_norm(counts)
    assert norm.shape == (69,) and norm.dtype == np.float32
    assert norm[len(TOTALS) - 1 :].sum() == pytest.approx(1.0)


def test_newer_opcodes_count_as_older_ones(llvm):
    text = (
        TARGET
        + b"define i64 @f(ptr %p) {\n %a = ptrtoaddr ptr %p to i64\n %b = freeze i64 %a\n ret i64 %b\n}\n"
    )
    counts = read(llvm.submit(observed, text).result()["first"].counts)
    values = dict(zip(INST_COUNT, inst_count(counts).tolist(), strict=True))
    assert (values["PtrToInt"], values["Freeze"], values["Ret"], values["TotalInsts"]) == (1, 1, 1, 3)
    # Freeze is no unary instruction in LLVM 10, a cast is.
    assert autophase(counts)[AUTOPHASE.index("testUnary")] == 1


def test_an_empty_module_has_zeros(llvm):
    counts = read(llvm.submit(observed, TARGET).result()["first"].counts)
    assert not counts.any() and not inst_count_norm(counts).any()
    assert len(counts) == sum(LAYOUT.values())


def test_another_size_is_refused(llvm, small):
    assert (
        llvm.submit(refused, small, SIZE - 1).result() == f"the counts of a module are no {SIZE - 1} numbers"
    )
    assert (
        llvm.submit(refused, small, SIZE + 1).result() == f"the counts of a module are no {SIZE + 1} numbers"
    )
    assert llvm.submit(refused, small, SIZE).result() == ""
