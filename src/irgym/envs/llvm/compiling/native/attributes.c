/* Hashes of attributes. */

#include "hashing.h"

#include <string.h>

enum { FUNCTION_ATTRIBUTES = -1, MOST = 64 };

/* Attributes with a range or a list of ranges: no function of the C interface returns them, but their text shows them. */
static int is_range(LLVMAttributeRef attribute) {
  return !LLVMIsEnumAttribute(attribute) && !LLVMIsStringAttribute(attribute) && !LLVMIsTypeAttribute(attribute);
}

/* Returns the next text such as `range(i32 0, 5)` from a place on, and how long it is; 0 if there is none. */
static const char *next_range(const char *text, size_t *length) {
  const char *range = strstr(text, "range("), *list = strstr(text, "initializes(");
  const char *start = !range || (list && list < range) ? list : range;
  if (!start) return 0;
  int open = 0;
  const char *end = start;
  for (; *end; end++) {
    if (*end == '(') open++;
    if (*end == ')' && !--open) break;
  }
  *length = end - start;
  return start;
}

/* Reads the ranges of a function or a call from its text: they come in the order of the attributes. */
static void learn_ranges(struct hashing *hashing, LLVMValueRef owner, unsigned params, counting count, reading read) {
  char *text = LLVMPrintValueToString(owner);
  const char *rest = text;
  for (unsigned place = 0; place <= params; place++) {
    unsigned attributes = count(owner, place);
    LLVMAttributeRef found[MOST];
    if (attributes > MOST) {
      hashing->strange = 1;
      break;
    }
    read(owner, place, found);
    /* Two ranges of one value, `range` and `initializes`, come in the order of their kinds. */
    for (unsigned each = 0; each < attributes; each++) {
      if (!is_range(found[each])) continue;
      size_t length = 0;
      rest = next_range(rest, &length);
      if (!rest) {
        hashing->strange = 1;
        rest = "";
        continue;
      }
      struct hashing apart = {0};
      add_bytes(&apart, rest, length);
      *held(hashing->context, &hashing->context->attributes, found[each]) = apart.digest;
      rest += length;
    }
  }
  LLVMDisposeMessage(text);
}

static void add_attribute(struct hashing *hashing, LLVMAttributeRef attribute, int *unknown) {
  unsigned length;
  if (LLVMIsStringAttribute(attribute)) {
    const char *kind = LLVMGetStringAttributeKind(attribute, &length);
    add_bytes(hashing, kind, length);
    const char *value = LLVMGetStringAttributeValue(attribute, &length);
    add_bytes(hashing, value, length);
    return;
  }
  add(hashing, LLVMGetEnumAttributeKind(attribute));
  if (LLVMIsEnumAttribute(attribute)) {
    add(hashing, LLVMGetEnumAttributeValue(attribute));
  } else if (LLVMIsTypeAttribute(attribute)) {
    LLVMTypeRef type = LLVMGetTypeAttributeValue(attribute);
    if (type) add_type(hashing, type);
  } else {
    struct digest *text = held(hashing->context, &hashing->context->attributes, attribute);
    if (!text->low && !text->high) *unknown = 1;
    add(hashing, text->low);
    add(hashing, text->high);
  }
}

void add_attributes(struct hashing *hashing, LLVMValueRef owner, unsigned params, counting count, reading read) {
  struct digest before = hashing->digest;
  for (int again = 0; again < 2; again++) {
    int unknown = 0;
    for (int place = FUNCTION_ATTRIBUTES; place <= (int)params; place++) {
      LLVMAttributeRef found[MOST];
      unsigned attributes = count(owner, place);
      add(hashing, attributes);
      if (!attributes) continue;
      if (attributes > MOST) {
        hashing->strange = 1;
        return;
      }
      read(owner, place, found);
      for (unsigned each = 0; each < attributes; each++) add_attribute(hashing, found[each], &unknown);
    }
    if (!unknown) return;
    hashing->digest = before;
    learn_ranges(hashing, owner, params, count, read);
  }
  hashing->strange = 1;
}

struct context *irgym_context(void) {
  struct context *context = calloc(1, sizeof *context);
  if (!context) abort();
  return context;
}

void irgym_drop_context(struct context *context) {
  free(context->types.entries);
  free(context->attributes.entries);
  free(context->texts);
  free(context->names);
  free(context->numbering.entries);
  free(context);
}
