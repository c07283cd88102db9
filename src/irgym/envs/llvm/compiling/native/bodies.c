/* Hashes of functions, and of what a module has beside the bodies of its functions. */

#include "hashing.h"

static void add_call(struct hashing *hashing, LLVMValueRef call, int opcode) {
  add_type(hashing, LLVMGetCalledFunctionType(call));
  add(hashing, LLVMGetInstructionCallConv(call));
  if (opcode == CALL) add(hashing, LLVMGetTailCallKind(call));
  if (LLVMGetNumOperandBundles(call)) hashing->strange = 1;
  add_attributes(hashing, call, LLVMGetNumArgOperands(call), LLVMGetCallSiteAttributeCount, LLVMGetCallSiteAttributes);
}

static void add_scope(struct hashing *hashing, LLVMValueRef access) {
  if (LLVMGetAtomicSyncScopeID) add(hashing, LLVMGetAtomicSyncScopeID(access));
  else hashing->strange = 1;
}

static void add_access(struct hashing *hashing, LLVMValueRef access) {
  add(hashing, LLVMGetAlignment(access));
  add(hashing, 2 * LLVMGetOrdering(access) + LLVMGetVolatile(access));
  if (LLVMGetOrdering(access)) add_scope(hashing, access);
}

static void add_switch(struct hashing *hashing, LLVMValueRef instruction) {
  if (!LLVMGetSwitchCaseValue) return; /* they are among the operands */
  unsigned successors = LLVMGetNumSuccessors(instruction);
  for (unsigned place = 1; place < successors; place++) add_value(hashing, LLVMGetSwitchCaseValue(instruction, place));
}

static void add_indices(struct hashing *hashing, LLVMValueRef instruction) {
  unsigned count = LLVMGetNumIndices(instruction);
  const unsigned *indices = LLVMGetIndices(instruction);
  add(hashing, count);
  for (unsigned place = 0; place < count; place++) add(hashing, indices[place]);
}

/* Adds what is neither an operand, nor the type, nor metadata. */
static void add_details(struct hashing *hashing, LLVMValueRef one, int opcode) {
  switch (opcode) {
    case ADD: case SUB: case MUL: case SHL: case TRUNC: add(hashing, 2 * LLVMGetNSW(one) + LLVMGetNUW(one)); break;
    case UDIV: case SDIV: case LSHR: case ASHR: add(hashing, LLVMGetExact(one)); break;
    case ZEXT: case UI_TO_FP: add(hashing, LLVMGetNNeg(one)); break;
    case OR: add(hashing, LLVMGetIsDisjoint(one)); break;
    case ICMP:
      add(hashing, LLVMGetICmpPredicate(one));
      if (LLVMGetICmpSameSign) add(hashing, LLVMGetICmpSameSign(one));
      break;
    case FCMP: add(hashing, LLVMGetFCmpPredicate(one)); break;
    case GEP:
      add_type(hashing, LLVMGetGEPSourceElementType(one));
      add(hashing, LLVMGEPGetNoWrapFlags(one));
      break;
    case ALLOCA:
      add_type(hashing, LLVMGetAllocatedType(one));
      add(hashing, LLVMGetAlignment(one));
      break;
    case LOAD: case STORE: add_access(hashing, one); break;
    case FENCE:
      add(hashing, LLVMGetOrdering(one));
      add_scope(hashing, one);
      break;
    case ATOMIC_UPDATE:
      add_access(hashing, one);
      add(hashing, LLVMGetAtomicRMWBinOp(one));
      break;
    case COMPARE_EXCHANGE:
      add(hashing, 4 * (unsigned long long)LLVMGetAlignment(one) + 2 * LLVMGetWeak(one) + LLVMGetVolatile(one));
      add(hashing, LLVMGetCmpXchgSuccessOrdering(one));
      add(hashing, LLVMGetCmpXchgFailureOrdering(one));
      add_scope(hashing, one);
      break;
    case CALL: case INVOKE: add_call(hashing, one, opcode); break;
    case SWITCH: add_switch(hashing, one); break;
    case EXTRACT_VALUE: case INSERT_VALUE: add_indices(hashing, one); break;
    case SHUFFLE: {
      unsigned count = LLVMGetNumMaskElements(one);
      add(hashing, count);
      for (unsigned place = 0; place < count; place++) add(hashing, LLVMGetMaskValue(one, place));
      break;
    }
    case PHI: {
      unsigned count = LLVMCountIncoming(one);
      for (unsigned place = 0; place < count; place++)
        add(hashing, *numbered(&hashing->context->numbering, LLVMGetIncomingBlock(one, place)));
      break;
    }
    case LANDING_PAD: add(hashing, LLVMIsCleanup(one)); break;
    case CALLBR: hashing->strange = 1; break;
  }
  if (LLVMCanValueUseFastMathFlags(one)) add(hashing, LLVMGetFastMathFlags(one));
}

static void add_instruction(struct hashing *hashing, LLVMValueRef one, LLVMContextRef llvm) {
  int opcode = LLVMGetInstructionOpcode(one), operands = LLVMGetNumOperands(one);
  add(hashing, opcode * 4096ull + operands);
  add_type(hashing, LLVMTypeOf(one));
  for (int place = 0; place < operands; place++) add_value(hashing, LLVMGetOperand(one, place));
  add_details(hashing, one, opcode);
  if (LLVMGetFirstDbgRecord && LLVMGetFirstDbgRecord(one)) hashing->strange = 1;
  if (!LLVMHasMetadata(one)) return;
  if (LLVMInstructionGetDebugLoc(one)) hashing->strange = 1;
  size_t count;
  LLVMValueMetadataEntry *entries = LLVMInstructionGetAllMetadataOtherThanDebugLoc(one, &count);
  add_metadata(hashing, entries, count, llvm);
}

/* Forgets all numbers. */
static void start(struct context *context) {
  context->numbering.used = 0;
  context->numbering.round++;
}

/* Numbers what a function's operands refer to. */
static void number(struct hashing *hashing, LLVMValueRef function) {
  int count = 0;
  start(hashing->context);
  for (LLVMValueRef one = LLVMGetFirstParam(function); one; one = LLVMGetNextParam(one))
    *numbered(&hashing->context->numbering, one) = count++;
  for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(function); block; block = LLVMGetNextBasicBlock(block)) {
    *numbered(&hashing->context->numbering, block) = count++;
    for (LLVMValueRef one = LLVMGetFirstInstruction(block); one; one = LLVMGetNextInstruction(one))
      *numbered(&hashing->context->numbering, one) = count++;
  }
}

int hash_body(struct context *context, LLVMValueRef function, struct digest *into, int *instructions) {
  struct hashing hashing = {context};
  LLVMContextRef llvm = LLVMGetTypeContext(LLVMTypeOf(function));
  number(&hashing, function);
  *instructions = 0;
  for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(function); block; block = LLVMGetNextBasicBlock(block)) {
    add(&hashing, BLOCK_VALUE);
    for (LLVMValueRef one = LLVMGetFirstInstruction(block); one; one = LLVMGetNextInstruction(one)) {
      add_instruction(&hashing, one, llvm);
      ++*instructions;
    }
  }
  *into = hashing.digest;
  return !hashing.strange;
}

static void add_linkage(struct hashing *hashing, LLVMValueRef global) {
  add_value(hashing, global);
  add_type(hashing, LLVMGlobalGetValueType(global));
  add_type(hashing, LLVMTypeOf(global));
  add(hashing, LLVMGetLinkage(global) * 4096ull + LLVMGetVisibility(global) * 256ull +
                   LLVMGetDLLStorageClass(global) * 16ull + LLVMGetUnnamedAddress(global));
}

static void add_object(struct hashing *hashing, LLVMValueRef object, LLVMContextRef llvm) {
  size_t count;
  LLVMComdatRef comdat = LLVMGetComdat(object);
  add_linkage(hashing, object);
  add(hashing, LLVMGetAlignment(object) * 16ull + (comdat ? 1 + LLVMGetComdatSelectionKind(comdat) : 0));
  add_text(hashing, LLVMGetSection(object));
  LLVMValueMetadataEntry *entries = LLVMGlobalCopyAllMetadata(object, &count);
  add_metadata(hashing, entries, count, llvm);
}

static void add_variable(struct hashing *hashing, LLVMValueRef variable, LLVMContextRef llvm) {
  LLVMValueRef content = LLVMGetInitializer(variable);
  add_object(hashing, variable, llvm);
  add(hashing, LLVMGetThreadLocalMode(variable) * 4ull + 2 * LLVMIsGlobalConstant(variable) +
                   LLVMIsExternallyInitialized(variable));
  if (content) add_value(hashing, content);
}

static void add_function(struct hashing *hashing, LLVMValueRef function, LLVMContextRef llvm) {
  unsigned params = LLVMCountParamTypes(LLVMGlobalGetValueType(function));
  add_object(hashing, function, llvm);
  add(hashing, 2 * LLVMGetFunctionCallConv(function) + !LLVMGetFirstBasicBlock(function));
  add_text(hashing, LLVMGetGC(function));
  if (LLVMHasPersonalityFn(function)) add_value(hashing, LLVMGetPersonalityFn(function));
  if (LLVMHasPrefixData(function)) add_value(hashing, LLVMGetPrefixData(function));
  if (LLVMHasPrologueData(function)) add_value(hashing, LLVMGetPrologueData(function));
  if (LLVMGetSubprogram(function)) hashing->strange = 1;
  add_attributes(hashing, function, params, LLVMGetAttributeCountAtIndex, LLVMGetAttributesAtIndex);
}

int hash_frame(struct context *context, LLVMModuleRef module, struct digest *into) {
  struct hashing hashing = {context};
  LLVMContextRef llvm = LLVMGetModuleContext(module);
  start(context);
  add_text(&hashing, LLVMGetTarget(module));
  add_text(&hashing, LLVMGetDataLayoutStr(module));
  for (LLVMValueRef one = LLVMGetFirstGlobal(module); one; one = LLVMGetNextGlobal(one))
    add_variable(&hashing, one, llvm);
  for (LLVMValueRef one = LLVMGetFirstGlobalAlias(module); one; one = LLVMGetNextGlobalAlias(one)) {
    add_linkage(&hashing, one);
    add_value(&hashing, LLVMAliasGetAliasee(one));
  }
  for (LLVMValueRef one = LLVMGetFirstFunction(module); one; one = LLVMGetNextFunction(one))
    add_function(&hashing, one, llvm);
  if (LLVMGetFirstGlobalIFunc(module)) hashing.strange = 1;
  *into = hashing.digest;
  return !hashing.strange;
}
