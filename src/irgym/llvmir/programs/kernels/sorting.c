/* Sorting, searching, heaps and tables. */

#include <stddef.h>
#include <stdint.h>

void insertion_sort(int32_t *a, size_t n) {
    for (size_t i = 1; i < n; i++) {
        size_t k = i;
        while (k > 0 && a[k - 1] > a[k]) {
            int32_t kept = a[k - 1];
            a[k - 1] = a[k];
            a[k] = kept;
            k--;
        }
    }
}

static void sift(int32_t *a, size_t k, size_t n) {
    while (2 * k + 1 < n) {
        size_t child = 2 * k + 1;
        if (child + 1 < n && a[child + 1] > a[child])
            child++;
        if (a[k] >= a[child])
            break;
        int32_t kept = a[k];
        a[k] = a[child];
        a[child] = kept;
        k = child;
    }
}

void heap_sort(int32_t *a, size_t n) {
    for (size_t start = n / 2; start-- > 0;)
        sift(a, start, n);
    for (size_t end = n; end-- > 1;) {
        int32_t top = a[0];
        a[0] = a[end];
        a[end] = top;
        sift(a, 0, end);
    }
}

void quick_sort(int32_t *a, int32_t n) {
    int32_t lows[64], highs[64];
    int32_t depth = 0;
    lows[depth] = 0;
    highs[depth++] = n - 1;
    while (depth > 0) {
        int32_t low = lows[--depth], high = highs[depth];
        while (low < high) {
            int32_t middle = low + (high - low) / 2;
            if (a[middle] < a[low]) {
                int32_t kept = a[middle];
                a[middle] = a[low];
                a[low] = kept;
            }
            if (a[high] < a[low]) {
                int32_t kept = a[high];
                a[high] = a[low];
                a[low] = kept;
            }
            if (a[high] < a[middle]) {
                int32_t kept = a[high];
                a[high] = a[middle];
                a[middle] = kept;
            }
            int32_t pivot = a[middle], i = low, j = high;
            while (i <= j) {
                while (a[i] < pivot)
                    i++;
                while (a[j] > pivot)
                    j--;
                if (i <= j) {
                    int32_t kept = a[i];
                    a[i] = a[j];
                    a[j] = kept;
                    i++;
                    j--;
                }
            }
            if (j - low < high - i) {
                if (i < high && depth < 64) {
                    lows[depth] = i;
                    highs[depth++] = high;
                }
                high = j;
            } else {
                if (low < j && depth < 64) {
                    lows[depth] = low;
                    highs[depth++] = j;
                }
                low = i;
            }
        }
    }
}

void merge(const int32_t *first, size_t n, const int32_t *second, size_t m, int32_t *out) {
    size_t i = 0, j = 0;
    while (i < n || j < m) {
        if (j >= m || (i < n && first[i] <= second[j]))
            out[i + j] = first[i], i++;
        else
            out[i + j] = second[j], j++;
    }
}

ptrdiff_t lower_bound(const int64_t *a, size_t n, int64_t key) {
    size_t low = 0, high = n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (a[middle] < key)
            low = middle + 1;
        else if (middle > 0 && a[middle - 1] >= key)
            high = middle;
        else
            return (ptrdiff_t)middle;
    }
    return low < n ? (ptrdiff_t)low : -1;
}

typedef struct {
    uint32_t key;
    uint32_t count;
    int64_t sum;
} Slot;

int32_t count_keys(const uint32_t *keys, const int32_t *values, size_t n, Slot *table, uint32_t bits) {
    uint32_t mask = (1u << bits) - 1;
    int32_t used = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t place = keys[i] * 2654435761u >> 7 & mask;
        while (table[place].count != 0 && table[place].key != keys[i])
            place = (place + 1) & mask;
        if (table[place].count == 0) {
            if ((uint32_t)used == mask)
                return -1;
            table[place].key = keys[i];
            table[place].sum = 0;
            used++;
        }
        table[place].count += 1;
        table[place].sum += values[i];
    }
    return used;
}

int32_t remove_key(Slot *table, uint32_t bits, uint32_t key) {
    uint32_t mask = (1u << bits) - 1;
    uint32_t place = key * 2654435761u >> 7 & mask;
    while (table[place].count != 0 && table[place].key != key)
        place = (place + 1) & mask;
    if (table[place].count == 0)
        return 0;
    uint32_t gap = place;
    for (uint32_t next = (gap + 1) & mask; table[next].count != 0; next = (next + 1) & mask) {
        uint32_t home = table[next].key * 2654435761u >> 7 & mask;
        if (((next - home) & mask) >= ((next - gap) & mask)) {
            table[gap] = table[next];
            gap = next;
        }
    }
    table[gap].count = 0;
    return 1;
}

size_t components(int32_t *parent, const int32_t *from, const int32_t *to, size_t edges, size_t n) {
    size_t count = n;
    for (size_t i = 0; i < n; i++)
        parent[i] = (int32_t)i;
    for (size_t e = 0; e < edges; e++) {
        int32_t a = from[e], b = to[e];
        while (parent[a] != a) {
            parent[a] = parent[parent[a]];
            a = parent[a];
        }
        while (parent[b] != b) {
            parent[b] = parent[parent[b]];
            b = parent[b];
        }
        if (a != b) {
            if (a < b)
                parent[b] = a;
            else
                parent[a] = b;
            count--;
        }
    }
    return count;
}
