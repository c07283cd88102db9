// Sorting by quicksort, with insertion sort for short parts. Argument: number of items.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct {
    uint32_t key;
    uint32_t value;
} item;

static void swap(item *a, item *b) {
    item kept = *a;
    *a = *b;
    *b = kept;
}

static void insertion(item *items, int n) {
    for (int i = 1; i < n; i++) {
        item current = items[i];
        int j = i;
        for (; j > 0 && items[j - 1].key > current.key; j--) items[j] = items[j - 1];
        items[j] = current;
    }
}

static void sort(item *items, int n) {
    while (n > 24) {
        int middle = n / 2;
        if (items[middle].key < items[0].key) swap(&items[middle], &items[0]);
        if (items[n - 1].key < items[0].key) swap(&items[n - 1], &items[0]);
        if (items[n - 1].key < items[middle].key) swap(&items[n - 1], &items[middle]);
        uint32_t pivot = items[middle].key;
        int i = 0, j = n - 1;
        while (i <= j) {
            while (items[i].key < pivot) i++;
            while (items[j].key > pivot) j--;
            if (i <= j) swap(&items[i++], &items[j--]);
        }
        if (j + 1 < n - i) {
            sort(items, j + 1);
            items += i;
            n -= i;
        } else {
            sort(items + i, n - i);
            n = j + 1;
        }
    }
    insertion(items, n);
}

int main(int count, char **words) {
    int n = count > 1 ? atoi(words[1]) : 2000000;
    if (n < 1 || n > 100000000) return 1;
    item *items = malloc(sizeof *items * (size_t)n);
    if (!items) return 2;
    uint32_t state = 1;
    for (int i = 0; i < n; i++) {
        state = state * 1664525u + 1013904223u;
        items[i] = (item){state >> 4, (uint32_t)i};
    }
    sort(items, n);
    uint64_t sum = 0;
    for (int i = 0; i < n; i++) {
        if (i && items[i].key < items[i - 1].key) return 3;
        sum = sum * 31 + items[i].key;
    }
    printf("%llu\n", (unsigned long long)sum);
    free(items);
    return 0;
}
