// Primes by the sieve of Eratosthenes, segment by segment. Argument: the limit.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEGMENT (1 << 15)

static uint8_t composite[SEGMENT];

int main(int count, char **words) {
    uint32_t limit = count > 1 ? (uint32_t)atoi(words[1]) : 60000000u;
    if (limit < 100 || limit > 2000000000u) return 1;
    uint32_t root = 1;
    while ((uint64_t)(root + 1) * (root + 1) <= limit) root++;
    uint32_t *primes = malloc(sizeof *primes * (root + 1)), *next = malloc(sizeof *next * (root + 1)), known = 0;
    uint8_t *small = calloc(root + 1, 1);
    if (!primes || !next || !small) return 2;
    for (uint32_t i = 2; i <= root; i++) {
        if (small[i]) continue;
        primes[known] = i;
        next[known++] = i * i;
        for (uint64_t j = (uint64_t)i * i; j <= root; j += i) small[j] = 1;
    }
    uint64_t found = 0, sum = 0;
    for (uint64_t low = 0; low <= limit; low += SEGMENT) {
        uint64_t high = low + SEGMENT - 1 < limit ? low + SEGMENT - 1 : limit;
        memset(composite, 0, sizeof composite);
        for (uint32_t k = 0; k < known; k++) {
            uint64_t j = next[k];
            for (; j <= high; j += primes[k]) composite[j - low] = 1;
            next[k] = (uint32_t)j;
        }
        for (uint64_t i = low < 2 ? 2 : low; i <= high; i++)
            if (!composite[i - low]) {
                found++;
                sum += i;
            }
    }
    printf("%llu %llu\n", (unsigned long long)found, (unsigned long long)sum);
    free(primes);
    free(next);
    free(small);
    return 0;
}
