/* What is used of LLVM's C interface; the wheel has no headers. */

#include <stddef.h>

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
enum {
  FLOAT_TYPE = 2, DOUBLE_TYPE = 3, LABEL_TYPE = 7, INTEGER_TYPE = 8, FUNCTION_TYPE = 9, STRUCT_TYPE = 10, ARRAY_TYPE = 11, POINTER_TYPE = 12,
  VECTOR_TYPE = 13, SCALABLE_TYPE = 17, TARGET_TYPE = 20
};

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
enum { INTERNAL_LINKAGE = 8, PRIVATE_LINKAGE = 9 };
int LLVMGetLinkage(LLVMValueRef global);

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

/* LLVMValueKind before LLVM 23, which has constants of bytes after those of integers: see `kind_of`. */
enum {
  ARGUMENT_VALUE = 0, BLOCK_VALUE = 1, FUNCTION_VALUE = 5, ALIAS_VALUE = 6, VARIABLE_VALUE = 8, EXPRESSION = 10,
  ARRAY_CONSTANT = 11, STRUCT_CONSTANT = 12, VECTOR_CONSTANT = 13, UNDEF = 14, ZEROES_CONSTANT = 15, DATA_ARRAY = 16,
  DATA_VECTOR = 17, INTEGER_CONSTANT = 18, FLOAT_CONSTANT = 19, NULL_POINTER = 20, TOKEN_NONE = 21, METADATA_VALUE = 22,
  INLINE_ASM = 23, INSTRUCTION_VALUE = 24, POISON_VALUE = 25
};

enum {
  ALLOCA = 26, LOAD = 27, STORE = 28, GEP = 29, TRUNC = 30, ZEXT = 31, UI_TO_FP = 35, SHUFFLE = 52, EXTRACT_VALUE = 53,
  INSERT_VALUE = 54, FENCE = 55, COMPARE_EXCHANGE = 56, ATOMIC_UPDATE = 57, LANDING_PAD = 59, SUB = 10, MUL = 12,
  UDIV = 14, SDIV = 15, SHL = 20, LSHR = 21, ASHR = 22, OR = 24
};

typedef struct LLVMOpaqueAttributeRef *LLVMAttributeRef;
typedef struct LLVMOpaqueMetadata *LLVMMetadataRef;
typedef struct LLVMOpaqueValueMetadataEntry LLVMValueMetadataEntry;
typedef struct LLVMOpaqueError *LLVMErrorRef;
typedef struct LLVMOpaqueTargetMachine *LLVMTargetMachineRef;
typedef struct LLVMOpaquePassBuilderOptions *LLVMPassBuilderOptionsRef;
typedef struct LLVMComdat *LLVMComdatRef;

int LLVMGetValueKind(LLVMValueRef value);
LLVMValueRef LLVMIsAConstantByte(LLVMValueRef value) __attribute__((weak)); /* since LLVM 23 */
double LLVMConstRealGetDouble(LLVMValueRef constant, int *lost);
const char *LLVMGetValueName2(LLVMValueRef value, size_t *length);
void LLVMSetValueName2(LLVMValueRef value, const char *name, size_t length);
LLVMValueRef LLVMGetNamedFunction(LLVMModuleRef module, const char *name);
LLVMValueRef LLVMGetNamedGlobal(LLVMModuleRef module, const char *name);
LLVMValueRef LLVMGetNamedGlobalAlias(LLVMModuleRef module, const char *name, size_t length);
char *LLVMPrintValueToString(LLVMValueRef value);
char *LLVMPrintTypeToString(LLVMTypeRef type);
const char *LLVMGetRawDataValues(LLVMValueRef constant, size_t *length) __attribute__((weak)); /* since LLVM 21 */
LLVMContextRef LLVMGetTypeContext(LLVMTypeRef type);
LLVMContextRef LLVMGetModuleContext(LLVMModuleRef module);
const char *LLVMGetTarget(LLVMModuleRef module);
const char *LLVMGetDataLayoutStr(LLVMModuleRef module);

unsigned LLVMGetPointerAddressSpace(LLVMTypeRef type);
LLVMTypeRef LLVMGetElementType(LLVMTypeRef type);
unsigned long long LLVMGetArrayLength2(LLVMTypeRef type);
unsigned LLVMGetVectorSize(LLVMTypeRef type);
unsigned LLVMCountStructElementTypes(LLVMTypeRef type);
LLVMTypeRef LLVMStructGetTypeAtIndex(LLVMTypeRef type, unsigned place);
const char *LLVMGetStructName(LLVMTypeRef type);
int LLVMIsPackedStruct(LLVMTypeRef type);
int LLVMIsOpaqueStruct(LLVMTypeRef type);
LLVMTypeRef LLVMGetReturnType(LLVMTypeRef function);
unsigned LLVMCountParamTypes(LLVMTypeRef function);
void LLVMGetParamTypes(LLVMTypeRef function, LLVMTypeRef *into);
int LLVMIsFunctionVarArg(LLVMTypeRef function);

int LLVMGetNSW(LLVMValueRef instruction);
int LLVMGetNUW(LLVMValueRef instruction);
int LLVMGetExact(LLVMValueRef instruction);
int LLVMGetNNeg(LLVMValueRef instruction);
int LLVMGetIsDisjoint(LLVMValueRef instruction);
int LLVMGetICmpSameSign(LLVMValueRef instruction) __attribute__((weak));
int LLVMCanValueUseFastMathFlags(LLVMValueRef instruction);
unsigned LLVMGetFastMathFlags(LLVMValueRef instruction);
unsigned LLVMGEPGetNoWrapFlags(LLVMValueRef address);
LLVMTypeRef LLVMGetGEPSourceElementType(LLVMValueRef address);
LLVMTypeRef LLVMGetAllocatedType(LLVMValueRef variable);
unsigned LLVMGetAlignment(LLVMValueRef value);
int LLVMGetVolatile(LLVMValueRef access);
int LLVMGetOrdering(LLVMValueRef access);
unsigned LLVMGetAtomicSyncScopeID(LLVMValueRef access) __attribute__((weak));
int LLVMGetWeak(LLVMValueRef exchange);
int LLVMGetCmpXchgSuccessOrdering(LLVMValueRef exchange);
int LLVMGetCmpXchgFailureOrdering(LLVMValueRef exchange);
int LLVMGetAtomicRMWBinOp(LLVMValueRef update);
unsigned LLVMGetNumIndices(LLVMValueRef instruction);
const unsigned *LLVMGetIndices(LLVMValueRef instruction);
unsigned LLVMGetNumMaskElements(LLVMValueRef shuffle);
int LLVMGetMaskValue(LLVMValueRef shuffle, unsigned place);
int LLVMIsCleanup(LLVMValueRef pad);
LLVMBasicBlockRef LLVMGetIncomingBlock(LLVMValueRef phi, unsigned place);
int LLVMGetTailCallKind(LLVMValueRef call);
unsigned LLVMGetInstructionCallConv(LLVMValueRef call);
unsigned LLVMGetNumArgOperands(LLVMValueRef call);
unsigned LLVMGetNumOperandBundles(LLVMValueRef call);
unsigned LLVMGetCallSiteAttributeCount(LLVMValueRef call, unsigned place);
void LLVMGetCallSiteAttributes(LLVMValueRef call, unsigned place, LLVMAttributeRef *into);
LLVMValueRef LLVMGetFirstDbgRecord(LLVMValueRef instruction) __attribute__((weak));

unsigned LLVMGetAttributeCountAtIndex(LLVMValueRef function, unsigned place);
void LLVMGetAttributesAtIndex(LLVMValueRef function, unsigned place, LLVMAttributeRef *into);
int LLVMIsEnumAttribute(LLVMAttributeRef attribute);
int LLVMIsStringAttribute(LLVMAttributeRef attribute);
int LLVMIsTypeAttribute(LLVMAttributeRef attribute);
unsigned LLVMGetEnumAttributeKind(LLVMAttributeRef attribute);
unsigned long long LLVMGetEnumAttributeValue(LLVMAttributeRef attribute);
LLVMTypeRef LLVMGetTypeAttributeValue(LLVMAttributeRef attribute);
const char *LLVMGetStringAttributeKind(LLVMAttributeRef attribute, unsigned *length);
const char *LLVMGetStringAttributeValue(LLVMAttributeRef attribute, unsigned *length);

int LLVMHasMetadata(LLVMValueRef instruction);
LLVMMetadataRef LLVMInstructionGetDebugLoc(LLVMValueRef instruction);
LLVMMetadataRef LLVMGetSubprogram(LLVMValueRef function);
LLVMValueMetadataEntry *LLVMInstructionGetAllMetadataOtherThanDebugLoc(LLVMValueRef instruction, size_t *count);
LLVMValueMetadataEntry *LLVMGlobalCopyAllMetadata(LLVMValueRef global, size_t *count);
unsigned LLVMValueMetadataEntriesGetKind(LLVMValueMetadataEntry *entries, unsigned place);
LLVMMetadataRef LLVMValueMetadataEntriesGetMetadata(LLVMValueMetadataEntry *entries, unsigned place);
void LLVMDisposeValueMetadataEntries(LLVMValueMetadataEntry *entries);
LLVMValueRef LLVMMetadataAsValue(LLVMContextRef context, LLVMMetadataRef metadata);
LLVMValueRef LLVMIsAMDNode(LLVMValueRef value);
const char *LLVMGetMDString(LLVMValueRef value, unsigned *length);
unsigned LLVMGetMDNodeNumOperands(LLVMValueRef node);
void LLVMGetMDNodeOperands(LLVMValueRef node, LLVMValueRef *into);

LLVMValueRef LLVMGetFirstGlobal(LLVMModuleRef module);
LLVMValueRef LLVMGetNextGlobal(LLVMValueRef global);
LLVMValueRef LLVMGetFirstGlobalAlias(LLVMModuleRef module);
LLVMValueRef LLVMGetNextGlobalAlias(LLVMValueRef alias);
LLVMValueRef LLVMAliasGetAliasee(LLVMValueRef alias);
LLVMValueRef LLVMGetFirstGlobalIFunc(LLVMModuleRef module);
LLVMValueRef LLVMGetInitializer(LLVMValueRef variable);
int LLVMIsGlobalConstant(LLVMValueRef variable);
int LLVMIsExternallyInitialized(LLVMValueRef variable);
int LLVMGetThreadLocalMode(LLVMValueRef variable);
int LLVMGetVisibility(LLVMValueRef global);
int LLVMGetDLLStorageClass(LLVMValueRef global);
int LLVMGetUnnamedAddress(LLVMValueRef global);
const char *LLVMGetSection(LLVMValueRef global);
LLVMComdatRef LLVMGetComdat(LLVMValueRef global);
int LLVMGetComdatSelectionKind(LLVMComdatRef comdat);
unsigned LLVMGetFunctionCallConv(LLVMValueRef function);
const char *LLVMGetGC(LLVMValueRef function);
int LLVMHasPersonalityFn(LLVMValueRef function);
LLVMValueRef LLVMGetPersonalityFn(LLVMValueRef function);
int LLVMHasPrefixData(LLVMValueRef function);
LLVMValueRef LLVMGetPrefixData(LLVMValueRef function);
int LLVMHasPrologueData(LLVMValueRef function);
LLVMValueRef LLVMGetPrologueData(LLVMValueRef function);

LLVMErrorRef LLVMRunPasses(LLVMModuleRef module, const char *passes, LLVMTargetMachineRef machine,
                           LLVMPassBuilderOptionsRef options);

/* Since LLVM 20. */
LLVMErrorRef LLVMRunPassesOnFunction(LLVMValueRef function, const char *passes, LLVMTargetMachineRef machine,
                                     LLVMPassBuilderOptionsRef options) __attribute__((weak));
