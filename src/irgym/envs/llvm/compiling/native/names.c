/* Names of symbols that passes make.

   Where a name is taken, LLVM appends a number that it counts up in the module's memory. A copy of a module counts anew,
   so that a pass would make other names there. Here these numbers follow from the order of the symbols. */

#include "hashing.h"

#include <stdio.h>
#include <string.h>

enum { LONGEST = 512 };

/* Returns the hash of a name. */
static struct digest hash_name(struct context *context, const char *name, size_t length) {
  struct hashing hashing = {context};
  add_bytes(&hashing, name, length);
  return hashing.digest;
}

static LLVMValueRef next_symbol(LLVMModuleRef module, LLVMValueRef symbol) {
  if (!symbol) {
    LLVMValueRef first = LLVMGetFirstFunction(module);
    return first ? first : LLVMGetFirstGlobal(module);
  }
  if (!LLVMIsAFunction(symbol)) return LLVMGetNextGlobal(symbol);
  LLVMValueRef next = LLVMGetNextFunction(symbol);
  return next ? next : LLVMGetFirstGlobal(module);
}

static int compare(const void *first, const void *second) {
  const struct digest *one = first, *other = second;
  return one->low < other->low ? -1 : one->low > other->low;
}

/* Notes the names of a program's symbols, which stay as they are. */
void irgym_keep_names(struct context *context, LLVMModuleRef module) {
  int count = 0;
  for (LLVMValueRef one = next_symbol(module, 0); one; one = next_symbol(module, one)) count++;
  free(context->names);
  context->names = memory(0, count * sizeof *context->names);
  context->count_names = 0;
  for (LLVMValueRef one = next_symbol(module, 0); one; one = next_symbol(module, one)) {
    size_t length;
    const char *name = LLVMGetValueName2(one, &length);
    context->names[context->count_names++] = hash_name(context, name, length);
  }
  qsort(context->names, context->count_names, sizeof *context->names, compare);
}

/* Writes a name without the numbers that LLVM appended, `f.3.extracted` as `f.extracted`, and a dot; returns its length,
   or 0 if LLVM appended none. */
static size_t base_of(struct context *context, LLVMValueRef symbol, char *into) {
  int linkage = LLVMGetLinkage(symbol);
  size_t length, base = 0, place = 0;
  const char *name = LLVMGetValueName2(symbol, &length);
  if (length + 16 > LONGEST || (linkage != INTERNAL_LINKAGE && linkage != PRIVATE_LINKAGE)) return 0;
  while (place < length) {
    size_t end = place + 1;
    int number = name[place] == '.' && end < length;
    for (; end < length && name[end] != '.'; end++) number = number && name[end] >= '0' && name[end] <= '9';
    if (number && place) {
      place = end;
      continue;
    }
    memcpy(into + base, name + place, end - place);
    base += end - place;
    place = end;
  }
  into[base++] = '.';
  if (base > length) return 0;
  struct digest key = hash_name(context, name, length);
  return bsearch(&key, context->names, context->count_names, sizeof key, compare) ? 0 : base;
}

static int is_free(LLVMModuleRef module, const char *name) {
  return !LLVMGetNamedFunction(module, name) && !LLVMGetNamedGlobal(module, name) &&
         !LLVMGetNamedGlobalAlias(module, name, strlen(name));
}

/* Numbers the symbols that passes made, in their order. */
void irgym_rename(struct context *context, LLVMModuleRef module) {
  struct made {
    LLVMValueRef symbol;
    char base[LONGEST];
    size_t length;
  } *made = 0;
  int count = 0, room = 0;
  char base[LONGEST];
  for (LLVMValueRef one = next_symbol(module, 0); one; one = next_symbol(module, one)) {
    size_t length = base_of(context, one, base);
    if (!length) continue;
    if (count == room) {
      room = 2 * room + 16;
      made = memory(made, room * sizeof *made);
    }
    made[count].symbol = one;
    made[count].length = length;
    memcpy(made[count++].base, base, length);
  }
  for (int place = 0; place < count; place++) { /* out of the way first */
    int length = snprintf(base, sizeof base, "irgym.apart.%d", place);
    LLVMSetValueName2(made[place].symbol, base, length);
  }
  for (int place = 0; place < count; place++) {
    size_t length = made[place].length;
    for (int number = 1;; number++) {
      int digits = snprintf(made[place].base + length, LONGEST - length, "%d", number);
      if (!is_free(module, made[place].base)) continue;
      LLVMSetValueName2(made[place].symbol, made[place].base, length + digits);
      break;
    }
  }
  free(made);
}
