/* Hashes of types, operands, constants and metadata. */

#include "hashing.h"

#include <string.h>

enum { NESTED = 64, NOTHING = 1000 };

static void enlarge(struct numbering *numbering) {
  struct numbering larger = {0, numbering->size ? 2 * numbering->size : 1024, numbering->used, numbering->round};
  larger.entries = calloc(larger.size, sizeof *larger.entries);
  if (!larger.entries) abort();
  numbering->used = 0;
  for (unsigned place = 0; place < numbering->size; place++) {
    struct numbered *old = &numbering->entries[place];
    if (old->round == larger.round && old->key) *numbered(&larger, old->key) = old->number;
  }
  free(numbering->entries);
  larger.used /= 2; /* each was counted twice */
  *numbering = larger;
}

int *numbered(struct numbering *numbering, const void *key) {
  if (2 * numbering->used >= numbering->size) enlarge(numbering);
  unsigned place = (unsigned)(((size_t)key >> 3) * 0x9E3779B97F4A7C15u >> 40) & (numbering->size - 1);
  for (;; place = (place + 1) & (numbering->size - 1)) {
    struct numbered *entry = &numbering->entries[place];
    if (entry->round == numbering->round && entry->key == key) return &entry->number;
    if (entry->round == numbering->round) continue;
    *entry = (struct numbered){key, -1, numbering->round};
    numbering->used++;
    return &entry->number;
  }
}

struct digest *held(struct context *context, struct table *table, const void *key) {
  int *place = number_of(table, key, 0);
  if (*place >= 0) return &context->texts[*place];
  if (context->count == context->room) {
    context->room = 2 * context->room + 64;
    context->texts = memory(context->texts, context->room * sizeof *context->texts);
  }
  context->texts[context->count] = (struct digest){0, 0};
  *place = context->count;
  return &context->texts[context->count++];
}

void add_bytes(struct hashing *hashing, const char *bytes, size_t length) {
  add(hashing, length);
  for (; length >= 8; bytes += 8, length -= 8) {
    unsigned long long word;
    memcpy(&word, bytes, 8);
    add(hashing, word);
  }
  unsigned long long rest = 0;
  memcpy(&rest, bytes, length);
  if (length) add(hashing, rest);
}

void add_text(struct hashing *hashing, const char *text) {
  add_bytes(hashing, text ? text : "", text ? strlen(text) : 0);
}

static void add_printed(struct hashing *hashing, char *text) {
  add_text(hashing, text);
  LLVMDisposeMessage(text);
}

static void hash_type(struct hashing *hashing, LLVMTypeRef type) {
  int kind = LLVMGetTypeKind(type);
  add(hashing, kind);
  switch (kind) {
    case INTEGER_TYPE: add(hashing, LLVMGetIntTypeWidth(type)); return;
    case POINTER_TYPE: add(hashing, LLVMGetPointerAddressSpace(type)); return;
    case ARRAY_TYPE:
      add(hashing, LLVMGetArrayLength2(type));
      add_type(hashing, LLVMGetElementType(type));
      return;
    case VECTOR_TYPE: case SCALABLE_TYPE:
      add(hashing, LLVMGetVectorSize(type));
      add_type(hashing, LLVMGetElementType(type));
      return;
    case STRUCT_TYPE: {
      unsigned count = LLVMIsOpaqueStruct(type) ? 0 : LLVMCountStructElementTypes(type);
      add_text(hashing, LLVMGetStructName(type));
      add(hashing, 4 * (unsigned long long)count + 2 * LLVMIsOpaqueStruct(type) + LLVMIsPackedStruct(type));
      for (unsigned place = 0; place < count; place++) add_type(hashing, LLVMStructGetTypeAtIndex(type, place));
      return;
    }
    case FUNCTION_TYPE: {
      unsigned count = LLVMCountParamTypes(type);
      LLVMTypeRef *params = memory(0, count * sizeof *params);
      LLVMGetParamTypes(type, params);
      add(hashing, 2 * (unsigned long long)count + LLVMIsFunctionVarArg(type));
      for (unsigned place = 0; place < count; place++) add_type(hashing, params[place]);
      add_type(hashing, LLVMGetReturnType(type));
      free(params);
      return;
    }
    case TARGET_TYPE: add_printed(hashing, LLVMPrintTypeToString(type));
  }
}

void add_type(struct hashing *hashing, LLVMTypeRef type) {
  struct digest known = *held(hashing->context, &hashing->context->types, type);
  if (!known.low && !known.high) {
    struct hashing apart = {hashing->context};
    hash_type(&apart, type);
    known = *held(hashing->context, &hashing->context->types, type) = apart.digest;
  }
  add(hashing, known.low ^ known.high);
}

static void add_global(struct hashing *hashing, LLVMValueRef global) {
  size_t length;
  const char *name = LLVMGetValueName2(global, &length);
  if (!length) hashing->strange = 1; /* what has no name can only be told by its place */
  add_bytes(hashing, name, length);
}

/* A node is hashed where it is met first; then its number tells it from others. */
static void add_node(struct hashing *hashing, LLVMValueRef value) {
  unsigned length;
  if (LLVMIsAMDNode(value)) {
    int *number = numbered(&hashing->context->numbering, value);
    if (*number >= 0) {
      add(hashing, *number);
      return;
    }
    *number = hashing->nodes++;
    unsigned count = LLVMGetMDNodeNumOperands(value);
    LLVMValueRef *operands = memory(0, count * sizeof *operands);
    LLVMGetMDNodeOperands(value, operands);
    add(hashing, count);
    for (unsigned place = 0; place < count; place++)
      if (operands[place]) add_value(hashing, operands[place]);
      else add(hashing, NOTHING);
    free(operands);
    return;
  }
  const char *text = LLVMGetMDString(value, &length);
  if (text) add_bytes(hashing, text, length);
  else hashing->strange = 1;
}

static void add_integer(struct hashing *hashing, LLVMValueRef constant) {
  LLVMTypeRef type = LLVMTypeOf(constant);
  if (LLVMGetTypeKind(type) == INTEGER_TYPE && LLVMGetIntTypeWidth(type) <= 64) {
    add(hashing, LLVMGetIntTypeWidth(type));
    add(hashing, LLVMConstIntGetZExtValue(constant));
  } else {
    add_printed(hashing, LLVMPrintValueToString(constant));
  }
}

static void add_float(struct hashing *hashing, LLVMValueRef constant) {
  int kind = LLVMGetTypeKind(LLVMTypeOf(constant)), lost = 1;
  double value = kind == FLOAT_TYPE || kind == DOUBLE_TYPE ? LLVMConstRealGetDouble(constant, &lost) : 0;
  unsigned long long bits;
  if (lost || value != value) { /* a double does not hold the bits of all NaNs */
    add_printed(hashing, LLVMPrintValueToString(constant));
    return;
  }
  memcpy(&bits, &value, sizeof bits);
  add(hashing, kind);
  add(hashing, bits);
}

/* Returns the kind of a value in the numbers of LLVM 22 and older. */
static int kind_of(LLVMValueRef value) {
  int kind = LLVMGetValueKind(value);
  if (!LLVMIsAConstantByte || kind <= INTEGER_CONSTANT) return kind;
  return kind == INTEGER_CONSTANT + 1 ? NOTHING : kind - 1;
}

/* Adds what an operand is: a place in the function, a name, or the value of a constant. */
void add_value(struct hashing *hashing, LLVMValueRef value) {
  int kind = kind_of(value);
  add(hashing, kind);
  switch (kind) {
    case ARGUMENT_VALUE: case BLOCK_VALUE: case INSTRUCTION_VALUE: {
      int number = *numbered(&hashing->context->numbering, value);
      if (number < 0) hashing->strange = 1;
      add(hashing, number);
      return;
    }
    case FUNCTION_VALUE: case ALIAS_VALUE: case VARIABLE_VALUE: add_global(hashing, value); return;
    case INTEGER_CONSTANT: add_integer(hashing, value); return;
    case UNDEF: case POISON_VALUE: case ZEROES_CONSTANT: case NULL_POINTER: case TOKEN_NONE:
      add_type(hashing, LLVMTypeOf(value));
      return;
    case DATA_ARRAY: case DATA_VECTOR: {
      size_t length = 0;
      const char *bytes = LLVMGetRawDataValues ? LLVMGetRawDataValues(value, &length) : 0;
      add_type(hashing, LLVMTypeOf(value));
      if (bytes) add_bytes(hashing, bytes, length);
      else add_printed(hashing, LLVMPrintValueToString(value));
      return;
    }
    case ARRAY_CONSTANT: case STRUCT_CONSTANT: case VECTOR_CONSTANT: {
      int count = LLVMGetNumOperands(value);
      add_type(hashing, LLVMTypeOf(value));
      if (++hashing->depth > NESTED) hashing->strange = 1;
      else for (int place = 0; place < count; place++) add_value(hashing, LLVMGetOperand(value, place));
      hashing->depth--;
      return;
    }
    case METADATA_VALUE: add_node(hashing, value); return;
    case FLOAT_CONSTANT: add_float(hashing, value); return;
    case EXPRESSION: case INLINE_ASM:
      add_printed(hashing, LLVMPrintValueToString(value));
      return;
    default: hashing->strange = 1;
  }
}

void add_metadata(struct hashing *hashing, LLVMValueMetadataEntry *entries, size_t count, LLVMContextRef context) {
  add(hashing, count);
  for (size_t place = 0; place < count; place++) {
    add(hashing, LLVMValueMetadataEntriesGetKind(entries, place));
    add_node(hashing, LLVMMetadataAsValue(context, LLVMValueMetadataEntriesGetMetadata(entries, place)));
  }
  LLVMDisposeValueMetadataEntries(entries);
}
