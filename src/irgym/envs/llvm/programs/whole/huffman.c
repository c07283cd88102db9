// Huffman's code: a text is encoded and decoded again. Argument: its length.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LETTERS 64

typedef struct {
    uint32_t times;
    int left, right;
} node;

static node nodes[2 * LETTERS];
static uint64_t codes[LETTERS];
static int lengths[LETTERS];

static int least(const int *alive, int count, int except) {
    int best = -1;
    for (int i = 0; i < count; i++)
        if (alive[i] && i != except && (best < 0 || nodes[i].times < nodes[best].times)) best = i;
    return best;
}

static int build(const uint32_t *times) {
    int alive[2 * LETTERS] = {0}, count = LETTERS;
    for (int i = 0; i < LETTERS; i++) {
        nodes[i] = (node){times[i] + 1, -1, -1};
        alive[i] = 1;
    }
    for (; count < 2 * LETTERS - 1; count++) {
        int first = least(alive, count, -1), second = least(alive, count, first);
        nodes[count] = (node){nodes[first].times + nodes[second].times, first, second};
        alive[first] = alive[second] = 0;
        alive[count] = 1;
    }
    return count - 1;
}

static void assign(int place, uint64_t code, int length) {
    if (nodes[place].left < 0) {
        codes[place] = code;
        lengths[place] = length;
        return;
    }
    assign(nodes[place].left, code << 1, length + 1);
    assign(nodes[place].right, code << 1 | 1, length + 1);
}

static size_t encode(const uint8_t *text, int n, uint8_t *bits) {
    size_t place = 0;
    for (int i = 0; i < n; i++)
        for (int k = lengths[text[i]] - 1; k >= 0; k--, place++)
            bits[place >> 3] |= (uint8_t)((codes[text[i]] >> k & 1) << (place & 7));
    return place;
}

static void decode(const uint8_t *bits, int n, int root, uint8_t *text) {
    size_t place = 0;
    for (int i = 0; i < n; i++) {
        int at = root;
        while (nodes[at].left >= 0) {
            at = bits[place >> 3] >> (place & 7) & 1 ? nodes[at].right : nodes[at].left;
            place++;
        }
        text[i] = (uint8_t)at;
    }
}

int main(int count, char **words) {
    int n = count > 1 ? atoi(words[1]) : 4000000;
    if (n < 1 || n > 100000000) return 1;
    uint8_t *text = malloc(n), *again = malloc(n), *bits = calloc((size_t)n * 4 + 16, 1);
    if (!text || !again || !bits) return 2;
    uint32_t times[LETTERS] = {0}, state = 5;
    for (int i = 0; i < n; i++) {
        state = state * 1664525u + 1013904223u;
        uint32_t first = state >> 26, second = state >> 20 & 63;
        text[i] = (uint8_t)(first < second ? first : second);
        times[text[i]]++;
    }
    int root = build(times);
    assign(root, 0, 0);
    size_t length = encode(text, n, bits);
    decode(bits, n, root, again);
    printf("%zu %d\n", length, memcmp(text, again, n));
    free(text);
    free(again);
    free(bits);
    return 0;
}
