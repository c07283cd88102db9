/* What is used of LLVM's C interface; the wheel has no headers. */

typedef struct LLVMOpaqueModule *LLVMModuleRef;
typedef struct LLVMOpaqueValue *LLVMValueRef;
typedef struct LLVMOpaqueBasicBlock *LLVMBasicBlockRef;

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
