/* A map from a pointer and a number to a number, by open addressing. */

#include <stdlib.h>

struct entry {
  const void *key;
  int scope, value;
};

struct table {
  struct entry *entries;
  unsigned size, used; /* size is a power of 2, or 0 */
};

/* Returns memory of a size; ends the process where there is none, as LLVM does. */
static void *memory(void *old, size_t bytes) {
  void *made = realloc(old, bytes ? bytes : 1);
  if (!made) abort();
  return made;
}

static struct entry *find(const struct table *table, const void *key, int scope) {
  size_t hash = (((size_t)key >> 4) + (size_t)(unsigned)scope * 0xC2B2AE3D27D4EB4Fu) * 0x9E3779B97F4A7C15u;
  unsigned place = (unsigned)(hash >> 32) & (table->size - 1);
  while (table->entries[place].key && (table->entries[place].key != key || table->entries[place].scope != scope))
    place = (place + 1) & (table->size - 1);
  return &table->entries[place];
}

static void grow(struct table *table) {
  struct table larger = {0, table->size ? 2 * table->size : 256, table->used};
  larger.entries = calloc(larger.size, sizeof *larger.entries);
  if (!larger.entries) abort();
  for (unsigned place = 0; place < table->size; place++) {
    struct entry *old = &table->entries[place];
    if (old->key) *find(&larger, old->key, old->scope) = *old;
  }
  free(table->entries);
  *table = larger;
}

/* Returns where the number of a key is, which is -1 if the key is new; valid until the next call. */
static int *number_of(struct table *table, const void *key, int scope) {
  if (2 * table->used >= table->size) grow(table);
  struct entry *found = find(table, key, scope);
  if (!found->key) {
    *found = (struct entry){key, scope, -1};
    table->used++;
  }
  return &found->value;
}
