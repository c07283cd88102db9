/* Hashes of what functions and modules are: what LLVM's text shows, but for the names of values and the numbers of
   metadata. They depend on nothing else, such as addresses. */

#include "llvm.h"
#include "table.h"

struct digest {
  unsigned long long low, high;
};

/* Numbers of the arguments, blocks and instructions of a function, and of metadata; by open addressing. An entry counts
   if it has the present round, so that nothing must be cleared between functions. */
struct numbering {
  struct numbered {
    const void *key;
    int number;
    unsigned round;
  } *entries;
  unsigned size, used, round; /* size is a power of 2, or 0 */
};

/* What is known of a context: what lives as long as it does, and room that is used again and again. */
struct context {
  struct table types, attributes; /* places in `texts` */
  struct digest *texts;
  int count, room;
  struct digest *names; /* hashes of the names of the program's symbols, in order */
  int count_names;
  struct numbering numbering;
};

/* A hash under way. */
struct hashing {
  struct context *context;
  struct digest digest;
  int nodes, depth;
  int strange; /* whether there is something that cannot be read */
};

typedef unsigned (*counting)(LLVMValueRef owner, unsigned place);
typedef void (*reading)(LLVMValueRef owner, unsigned place, LLVMAttributeRef *into);

static inline void mix(struct digest *digest, unsigned long long number) {
  unsigned long long low = digest->low + number * 0xC2B2AE3D27D4EB4Fu, high = digest->high ^ number * 0x9FB21C651E98DF25u;
  digest->low = (low << 31 | low >> 33) * 0x9E3779B185EBCA87u;
  digest->high = (high << 27 | high >> 37) * 0x94D049BB133111EBu + 0x52DCE729;
}

static inline void add(struct hashing *hashing, unsigned long long number) { mix(&hashing->digest, number); }

/* Returns where the number of a key is, which is -1 if the key is new; valid until the next call. */
int *numbered(struct numbering *numbering, const void *key);

/* Returns the hash that a table of a context holds for a key; zeros if there is none yet. Valid until the next call. */
struct digest *held(struct context *context, struct table *table, const void *key);

void add_bytes(struct hashing *hashing, const char *bytes, size_t length);
void add_text(struct hashing *hashing, const char *text);
void add_type(struct hashing *hashing, LLVMTypeRef type);
void add_value(struct hashing *hashing, LLVMValueRef value);
void add_metadata(struct hashing *hashing, LLVMValueMetadataEntry *entries, size_t count, LLVMContextRef context);
void add_attributes(struct hashing *hashing, LLVMValueRef owner, unsigned params, counting count, reading read);

/* Numbers the symbols that passes made, in their order. */
void irgym_rename(struct context *context, LLVMModuleRef module);

/* Both return 0 if there is something that they cannot read, such as debug information. */
int hash_body(struct context *context, LLVMValueRef function, struct digest *into, int *instructions);
int hash_frame(struct context *context, LLVMModuleRef module, struct digest *into);
