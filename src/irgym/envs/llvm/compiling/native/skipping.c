/* Runs passes on those functions of a module that they may change.

   A pass of functions depends on the function and on the frame: what the module has beside bodies. Where it changed
   nothing in an equal function and frame before, it is not run again. */

#include "hashing.h"

#include <string.h>

enum {
  MOST_KNOWN = 1 << 21,
  SHARE = 3 /* a run on each of a third of the functions takes as long as one on all */
};

/* What is known to change nothing: hashes of function, frame and passes. A set by open addressing. */
struct known {
  struct digest *keys;
  unsigned size, used; /* size is a power of 2, or 0 */
};

struct part {
  LLVMValueRef function;
  struct digest digest;
  int instructions;
};

/* The functions of a module with their hashes. */
struct parts {
  struct context *context;
  LLVMModuleRef module;
  struct digest frame;
  struct part *part;
  int count;
};

struct known *irgym_known(void) {
  struct known *known = calloc(1, sizeof *known);
  if (!known) abort();
  return known;
}

static struct digest *place_of(struct known *known, struct digest key) {
  unsigned place = (unsigned)(key.high >> 20) & (known->size - 1);
  while ((known->keys[place].low || known->keys[place].high) &&
         (known->keys[place].low != key.low || known->keys[place].high != key.high))
    place = (place + 1) & (known->size - 1);
  return &known->keys[place];
}

static int is_known(struct known *known, struct digest key) {
  if (!known->size) return 0;
  struct digest *found = place_of(known, key);
  return found->low || found->high;
}

static void remember(struct known *known, struct digest key) {
  if (known->used >= MOST_KNOWN) {
    memset(known->keys, 0, known->size * sizeof *known->keys);
    known->used = 0;
  }
  if (2 * known->used >= known->size) {
    struct known larger = {0, known->size ? 2 * known->size : 4096, known->used};
    larger.keys = calloc(larger.size, sizeof *larger.keys);
    if (!larger.keys) abort();
    for (unsigned place = 0; place < known->size; place++)
      if (known->keys[place].low || known->keys[place].high) *place_of(&larger, known->keys[place]) = known->keys[place];
    free(known->keys);
    *known = larger;
  }
  struct digest *place = place_of(known, key);
  if (!place->low && !place->high) known->used++;
  *place = key;
}

static int count_bodies(LLVMModuleRef module) {
  int count = 0;
  for (LLVMValueRef one = LLVMGetFirstFunction(module); one; one = LLVMGetNextFunction(one))
    count += LLVMGetFirstBasicBlock(one) != 0;
  return count;
}

void irgym_drop_parts(struct parts *parts) {
  free(parts->part);
  free(parts);
}

static struct parts *parts_of(struct context *context, LLVMModuleRef module) {
  struct parts *parts = memory(0, sizeof *parts);
  *parts = (struct parts){context, module};
  parts->part = memory(0, count_bodies(module) * sizeof *parts->part);
  for (LLVMValueRef one = LLVMGetFirstFunction(module); one; one = LLVMGetNextFunction(one))
    if (LLVMGetFirstBasicBlock(one)) parts->part[parts->count++].function = one;
  return parts;
}

/* Returns the functions of a module with their hashes; 0 if there is something that they cannot show. */
struct parts *irgym_parts(struct context *context, LLVMModuleRef module) {
  struct parts *parts = parts_of(context, module);
  int readable = hash_frame(context, module, &parts->frame);
  for (int place = 0; place < parts->count && readable; place++) {
    struct part *part = &parts->part[place];
    readable = hash_body(context, part->function, &part->digest, &part->instructions);
  }
  if (readable) return parts;
  irgym_drop_parts(parts);
  return 0;
}

/* Returns the same of a copy of the module. */
struct parts *irgym_copy_parts(const struct parts *from, LLVMModuleRef copy) {
  struct parts *parts = parts_of(from->context, copy);
  if (parts->count != from->count) abort();
  parts->frame = from->frame;
  for (int place = 0; place < parts->count; place++) {
    LLVMValueRef function = parts->part[place].function;
    parts->part[place] = from->part[place];
    parts->part[place].function = function;
  }
  return parts;
}

/* Fills in the hash of the module; returns the number of its instructions. */
int irgym_parts_digest(const struct parts *parts, struct digest *into) {
  int instructions = 0;
  *into = parts->frame;
  for (int place = 0; place < parts->count; place++) {
    mix(into, parts->part[place].digest.low);
    mix(into, parts->part[place].digest.high);
    instructions += parts->part[place].instructions;
  }
  return instructions;
}

static struct digest key_of(const struct parts *parts, const struct part *part, struct digest passes) {
  struct digest key = passes;
  mix(&key, parts->frame.low);
  mix(&key, parts->frame.high);
  mix(&key, part->digest.low);
  mix(&key, part->digest.high);
  return key;
}

static int equal(struct digest first, struct digest second) {
  return first.low == second.low && first.high == second.high;
}

static struct digest frame_of(const struct parts *parts, int *readable) {
  struct digest frame = {0};
  *readable = hash_frame(parts->context, parts->module, &frame) && *readable;
  return frame;
}

/* A run of passes of functions on a module. */
struct running {
  struct known *known;
  struct parts *parts;
  const struct digest *keys;  /* of each function with the passes */
  const char *passes, *inner; /* for a module, and for a function */
  LLVMTargetMachineRef machine;
  LLVMPassBuilderOptionsRef options;
  int same;                   /* whether the frame is as it was */
  int *readable;              /* whether the hashes still show all that the module is */
};

/* Hashes a function after a run; returns whether it is as before. */
static int rehash(struct running *run, struct part *part) {
  struct digest before = part->digest;
  if (!hash_body(run->parts->context, part->function, &part->digest, &part->instructions)) *run->readable = 0;
  return equal(part->digest, before);
}

/* Runs passes on each function that they may change. A function may be one of few, so that the others are left out. */
static LLVMErrorRef run_on_each(struct running *run, char *changed) {
  for (int place = 0; place < run->parts->count; place++) {
    struct part *part = &run->parts->part[place];
    changed[place] = 1;
    if (run->same && is_known(run->known, run->keys[place])) continue;
    LLVMErrorRef error = LLVMRunPassesOnFunction(part->function, run->inner, run->machine, run->options);
    if (error) return error;
    changed[place] = !rehash(run, part);
    if (changed[place] && !equal(frame_of(run->parts, run->readable), run->parts->frame)) run->same = 0;
  }
  if (!run->same) { /* what is new has new names perhaps */
    irgym_rename(run->parts->context, run->parts->module);
    for (int place = 0; place < run->parts->count; place++) rehash(run, &run->parts->part[place]);
  }
  return 0;
}

static LLVMErrorRef run_on_all(struct running *run, char *changed) {
  LLVMErrorRef error = LLVMRunPasses(run->parts->module, run->passes, run->machine, run->options);
  if (!error) irgym_rename(run->parts->context, run->parts->module);
  for (int place = 0; place < run->parts->count && !error; place++)
    changed[place] = !rehash(run, &run->parts->part[place]);
  return error;
}

/* Runs passes of functions on a module, where they may change something, until there is an error, which is returned.
   `ran` says whether they ran at all, `readable` whether the hashes still show all that the module is. */
LLVMErrorRef irgym_run_on_functions(struct known *known, struct parts *parts, const char *passes,
                                    const char *inner, LLVMTargetMachineRef machine,
                                    LLVMPassBuilderOptionsRef options, int *ran, int *readable) {
  struct hashing name = {0};
  struct digest *keys = memory(0, parts->count * sizeof *keys);
  struct running run = {known, parts, keys, passes, inner, machine, options, 1, readable};
  int unknown = 0; /* functions that the passes may change */
  char *changed = calloc(parts->count + 1, 1);
  if (!changed) abort();
  add_text(&name, passes);
  *readable = 1;
  for (int place = 0; place < parts->count; place++) {
    keys[place] = key_of(parts, &parts->part[place], name.digest);
    unknown += !is_known(known, keys[place]);
  }
  LLVMErrorRef error = 0;
  *ran = unknown > 0;
  if (unknown) {
    int few = LLVMRunPassesOnFunction && unknown * SHARE <= parts->count;
    error = few ? run_on_each(&run, changed) : run_on_all(&run, changed);
  }
  if (*ran && !error) {
    struct digest frame = frame_of(parts, readable);
    run.same = run.same && *readable && equal(frame, parts->frame);
    parts->frame = frame;
    for (int place = 0; run.same && place < parts->count; place++)
      if (!changed[place]) remember(known, keys[place]);
  }
  free(keys);
  free(changed);
  return error;
}
