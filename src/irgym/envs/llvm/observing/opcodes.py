"""LLVM's opcodes as its C interface numbers them."""

_NUMBERS = (
    "Ret:1 Br:2 Switch:3 IndirectBr:4 Invoke:5 Resume:58 Unreachable:7 CleanupRet:61 CatchRet:62 "
    "CatchSwitch:65 CallBr:67 FNeg:66 Add:8 FAdd:9 Sub:10 FSub:11 Mul:12 FMul:13 UDiv:14 SDiv:15 "
    "FDiv:16 URem:17 SRem:18 FRem:19 Shl:20 LShr:21 AShr:22 And:23 Or:24 Xor:25 Alloca:26 "
    "Load:27 Store:28 GetElementPtr:29 Fence:55 AtomicCmpXchg:56 AtomicRMW:57 Trunc:30 ZExt:31 "
    "SExt:32 FPToUI:33 FPToSI:34 UIToFP:35 SIToFP:36 FPTrunc:37 FPExt:38 PtrToInt:39 IntToPtr:40 "
    "BitCast:41 AddrSpaceCast:60 CleanupPad:64 CatchPad:63 ICmp:42 FCmp:43 PHI:44 Call:45 "
    "Select:46 UserOp1:47 UserOp2:48 VAArg:49 ExtractElement:50 InsertElement:51 "
    "ShuffleVector:52 ExtractValue:53 InsertValue:54 LandingPad:59 Freeze:68"
)

NUMBERS = {name: int(number) for name, _, number in (pair.partition(":") for pair in _NUMBERS.split())}
"""Numbers of LLVM 10's opcodes (`LLVMOpcode` in llvm-c/Core.h, which never change), in InstCount's order."""

NEWER: dict[str, tuple[int, str]] = {
    "PtrToAddr": (69, "PtrToInt"),
    "UncondBr": (70, "Br"),
    "CondBr": (71, "Br"),
}
"""Opcodes since LLVM 10, each with its number and the older opcode that it counts as."""

OPCODES = 80
"""Length of a vector of counts by number."""
