"""Counts of a module, from which InstCount, Autophase and IR2Vec follow.

The child that holds a module sends these counts, 232 numbers; everything else is computed from them.
InstCount and Autophase have the names, order and meaning of CompilerGym 0.2.5, which follows LLVM 10 and, for
Autophase, Haj-Ali et al., "AutoPhase: Juggling HLS Phase Orderings in Random Forests with Deep
Reinforcement Learning", MLSys 2020.
"""

from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise

import numpy as np
from numpy.typing import NDArray

from irgym.envs.llvm.compiling.library import Module
from irgym.envs.llvm.observing.opcodes import NEWER, NUMBERS, OPCODES

Counts = NDArray[np.int32]
"""Shape [SIZE]; the parts follow one another as in `LAYOUT`."""

INST_COUNT = ("TotalInsts", "TotalBlocks", "TotalFuncs", *NUMBERS)
"""Names of InstCount's 70 values; CompilerGym's dictionaries add `Count`."""

TOTALS = INST_COUNT[:3]
"""Names of the totals. Functions include declarations, as CompilerGym's do."""

SHAPE = (
    *("BBNumArgsHi", "BBNumArgsLo", "onePred", "onePredOneSuc", "onePredTwoSuc", "oneSuccessor"),
    *("twoPred", "twoPredOneSuc", "twoEach", "twoSuccessor", "morePreds", "BB03Phi", "BBHiPhi", "BBNoPhi"),
    *("BeginPhi", "returnInt", "CriticalCount", "NumEdges", "const32Bit", "const64Bit", "numConstZeroes"),
    *("numConstOnes", "UncondBranches", "binaryConstArg", "BlockMid", "BlockLow", "ArgsPhi"),
)
"""Those of Autophase's features that are neither counts of opcodes nor sums of them."""

AUTOPHASE = (
    *SHAPE[:15],
    *("BranchCount", *SHAPE[15:24], "NumAShrInst", "NumAddInst", "NumAllocaInst", "NumAndInst"),
    *("BlockMid", "BlockLow", "NumBitCastInst", "NumBrInst", "NumCallInst", "NumGetElementPtrInst"),
    *("NumICmpInst", "NumLShrInst", "NumLoadInst", "NumMulInst", "NumOrInst", "NumPHIInst", "NumRetInst"),
    *("NumSExtInst", "NumSelectInst", "NumShlInst", "NumStoreInst", "NumSubInst", "NumTruncInst"),
    *("NumXorInst", "NumZExtInst", "TotalBlocks", "TotalInsts", "TotalMemInst", "TotalFuncs", "ArgsPhi"),
    "testUnary",
)
"""Names of Autophase's 56 features; the reference page defines each."""

TYPES = (
    *("FloatTy", "VoidTy", "LabelTy", "MetadataTy", "VectorTy", "TokenTy", "IntegerTy", "FunctionTy"),
    *("PointerTy", "StructTy", "ArrayTy", "UnknownTy"),
)
"""IR2Vec's kinds of types, as LLVM names them."""

OPERANDS = ("Function", "Pointer", "Constant", "Variable")
"""IR2Vec's kinds of operands."""

PREDICATES = (
    *("FCMP_false", "FCMP_oeq", "FCMP_ogt", "FCMP_oge", "FCMP_olt", "FCMP_ole", "FCMP_one", "FCMP_ord"),
    *("FCMP_uno", "FCMP_ueq", "FCMP_ugt", "FCMP_uge", "FCMP_ult", "FCMP_ule", "FCMP_une", "FCMP_true"),
    *("ICMP_eq", "ICMP_ne", "ICMP_ugt", "ICMP_uge", "ICMP_ult", "ICMP_ule", "ICMP_sgt", "ICMP_sge"),
    *("ICMP_slt", "ICMP_sle"),
)
"""IR2Vec's predicates of comparisons."""

LAYOUT = {
    "totals": len(TOTALS),
    "opcodes": OPCODES,
    "shape": len(SHAPE),
    "reachable": OPCODES,
    "types": len(TYPES),
    "operands": len(OPERANDS),
    "predicates": len(PREDICATES),
}
"""Lengths of the parts of the counts, as in `struct counts` of compiling/native/counting.c.

The last four are of blocks that a path from their function's entry leads to, as IR2Vec has it.
"""

SIZE = sum(LAYOUT.values())
"""Length of the counts."""

_SLICES = {
    name: slice(begin, end)
    for name, (begin, end) in zip(LAYOUT, pairwise(accumulate(LAYOUT.values(), initial=0)), strict=True)
}

_MEMORY = ("GetElementPtr", "Load", "Store", "Call", "Invoke", "Alloca")
_UNARY = (
    *("Alloca", "Load", "VAArg", "ExtractValue", "FNeg", "Trunc", "ZExt", "SExt", "FPToUI", "FPToSI"),
    *("UIToFP", "SIToFP", "FPTrunc", "FPExt", "PtrToInt", "IntToPtr", "BitCast", "AddrSpaceCast"),
)


def counts_of(module: Module) -> Counts:
    """Return the counts of a module."""
    return np.frombuffer(module.counts(SIZE), dtype=np.int32)


def part(counts: Counts, name: str) -> Counts:
    """Return a part of some counts, by its name in `LAYOUT`."""
    return counts[_SLICES[name]]


class _Sums:
    """Features that are sums of counts.

    Args:
        names: Their names; each is a total, an opcode or one of `SHAPE`, unless `sums` has it.
        sums: The summands of the others.
    """

    def __init__(self, names: tuple[str, ...], sums: Mapping[str, Sequence[str]]) -> None:
        places = _places()
        summed = [
            [place for summand in sums.get(name, (name,)) for place in places[summand]] for name in names
        ]
        self._places = np.array([place for places in summed for place in places], dtype=np.intp)
        self._begins = np.array([0, *accumulate(map(len, summed))][:-1], dtype=np.intp)

    def of(self, counts: Counts) -> NDArray[np.int64]:
        return np.add.reduceat(counts[self._places], self._begins, dtype=np.int64)


def _places() -> dict[str, list[int]]:
    """Return where the counts hold each total, opcode and name of `SHAPE`."""
    numbers = {name: [number] for name, number in NUMBERS.items()}
    for number, older in NEWER.values():
        numbers[older].append(number)
    places = {name: [_SLICES["opcodes"].start + number for number in numbers[name]] for name in NUMBERS}
    for known, start in ((TOTALS, _SLICES["totals"].start), (SHAPE, _SLICES["shape"].start)):
        places |= {name: [start + place] for place, name in enumerate(known)}
    return places


_INST_COUNT = _Sums(INST_COUNT, {})
_AUTOPHASE = _Sums(
    AUTOPHASE,
    {"BranchCount": ("Br",), "TotalMemInst": _MEMORY, "testUnary": _UNARY}
    | {f"Num{name}Inst": (name,) for name in NUMBERS},
)


def inst_count(counts: Counts) -> NDArray[np.int64]:
    """Return InstCount's values by `INST_COUNT`, shape [70].

    Opcodes since LLVM 10 count as older ones: see `NEWER`.
    """
    return _INST_COUNT.of(counts)


def inst_count_norm(counts: Counts) -> NDArray[np.float32]:
    """Return InstCount's values but the first relative to the first, shape [69]; 0 in an empty module."""
    values = inst_count(counts)
    return (values[1:] / max(int(values[0]), 1)).astype(np.float32)


def autophase(counts: Counts) -> NDArray[np.int64]:
    """Return Autophase's features by `AUTOPHASE`, shape [56]."""
    return _AUTOPHASE.of(counts)
