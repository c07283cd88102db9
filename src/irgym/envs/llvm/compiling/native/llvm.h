/* What is used of LLVM's C interface; the wheel has no headers. */

typedef struct LLVMOpaqueModule *LLVMModuleRef;
typedef struct LLVMOpaqueValue *LLVMValueRef;
typedef struct LLVMOpaqueBasicBlock *LLVMBasicBlockRef;
typedef struct LLVMOpaqueType *LLVMTypeRef;

/* LLVMOpcode of llvm-c/Core.h, whose numbers never change. LLVM 23 splits Br into UncondBr and CondBr. */
enum {
  RET = 1, BR = 2, SWITCH = 3, INVOKE = 5, CALLBR = 67, UNCOND_BR = 70,
  ADD = 8, XOR = 25,
  ICMP = 42, FCMP = 43, PHI = 44, CALL = 45,
};

/* LLVMTypeKind, whose numbers never change either. */
enum { LABEL_TYPE = 7, INTEGER_TYPE = 8, POINTER_TYPE = 12 };

LLVMValueRef LLVMGetFirstFunction(LLVMModuleRef module);
LLVMValueRef LLVMGetNextFunction(LLVMValueRef function);
LLVMBasicBlockRef LLVMGetFirstBasicBlock(LLVMValueRef function);
LLVMBasicBlockRef LLVMGetNextBasicBlock(LLVMBasicBlockRef block);
LLVMValueRef LLVMGetFirstInstruction(LLVMBasicBlockRef block);
LLVMValueRef LLVMGetNextInstruction(LLVMValueRef instruction);
int LLVMGetInstructionOpcode(LLVMValueRef instruction);
int LLVMGetNumOperands(LLVMValueRef value);
LLVMValueRef LLVMGetOperand(LLVMValueRef value, unsigned place);
void LLVMSetOperand(LLVMValueRef value, unsigned place, LLVMValueRef operand);

typedef struct LLVMOpaqueContext *LLVMContextRef;
typedef struct LLVMOpaqueDiagnosticInfo *LLVMDiagnosticInfoRef;
typedef void (*LLVMDiagnosticHandler)(LLVMDiagnosticInfoRef, void *);

void LLVMContextSetDiagnosticHandler(LLVMContextRef context, LLVMDiagnosticHandler handler, void *data);
char *LLVMGetDiagInfoDescription(LLVMDiagnosticInfoRef diagnostic);
int LLVMGetDiagInfoSeverity(LLVMDiagnosticInfoRef diagnostic); /* 0 for an error */
void LLVMDisposeMessage(char *message);

LLVMValueRef LLVMGetBasicBlockTerminator(LLVMBasicBlockRef block);
unsigned LLVMGetNumSuccessors(LLVMValueRef terminator);
LLVMBasicBlockRef LLVMGetSuccessor(LLVMValueRef terminator, unsigned place);
LLVMValueRef LLVMGetCalledValue(LLVMValueRef call);
LLVMTypeRef LLVMGetCalledFunctionType(LLVMValueRef call);
LLVMTypeRef LLVMGlobalGetValueType(LLVMValueRef global);
int LLVMGetICmpPredicate(LLVMValueRef compare); /* 32 for eq to 41 for sle */
int LLVMGetFCmpPredicate(LLVMValueRef compare); /* 0 for false to 15 for true */
unsigned LLVMCountIncoming(LLVMValueRef phi);
LLVMValueRef LLVMGetFirstParam(LLVMValueRef function);
LLVMValueRef LLVMGetNextParam(LLVMValueRef argument);
int LLVMGetLinkage(LLVMValueRef global); /* 8 for internal, 9 for private */

LLVMTypeRef LLVMTypeOf(LLVMValueRef value);
int LLVMGetTypeKind(LLVMTypeRef type);
unsigned LLVMGetIntTypeWidth(LLVMTypeRef type);
int LLVMIsConstant(LLVMValueRef value);
int LLVMIsNull(LLVMValueRef constant);
LLVMValueRef LLVMIsAConstantInt(LLVMValueRef value); /* 0 if it is none; so the others */
LLVMValueRef LLVMIsAFunction(LLVMValueRef value);
LLVMValueRef LLVMIsAGlobalValue(LLVMValueRef value);
unsigned long long LLVMConstIntGetZExtValue(LLVMValueRef constant); /* of at most 64 bits */
long long LLVMConstIntGetSExtValue(LLVMValueRef constant);          /* of at most 64 bits */
LLVMValueRef LLVMConstInt(LLVMTypeRef type, unsigned long long value, int extend);

/* Since LLVM 22, which holds the values of cases no longer among the operands of a switch: place 1 is the first. */
LLVMValueRef LLVMGetSwitchCaseValue(LLVMValueRef instruction, unsigned place) __attribute__((weak));
