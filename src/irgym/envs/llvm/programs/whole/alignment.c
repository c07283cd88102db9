// Local alignment of two sequences, by the method of Smith and Waterman. Argument: their length.
#include <stdio.h>
#include <stdlib.h>

static int larger(int a, int b) { return a > b ? a : b; }

static int align(const char *first, int n, const char *second, int m, int *row, int *gaps) {
    int best = 0;
    for (int j = 0; j <= m; j++) row[j] = gaps[j] = 0;
    for (int i = 1; i <= n; i++) {
        int diagonal = 0, gap = 0;
        for (int j = 1; j <= m; j++) {
            int match = diagonal + (first[i - 1] == second[j - 1] ? 3 : -2);
            gaps[j] = larger(gaps[j] - 1, row[j] - 4);
            gap = larger(gap - 1, row[j - 1] - 4);
            diagonal = row[j];
            row[j] = larger(larger(0, match), larger(gap, gaps[j]));
            best = larger(best, row[j]);
        }
    }
    return best;
}

int main(int count, char **words) {
    int n = count > 1 ? atoi(words[1]) : 7000;
    if (n < 1 || n > 1000000) return 1;
    char *first = malloc(n), *second = malloc(n);
    int *row = malloc(sizeof *row * (n + 1)), *gaps = malloc(sizeof *gaps * (n + 1));
    if (!first || !second || !row || !gaps) return 2;
    unsigned state = 9;
    for (int i = 0; i < n; i++) {
        state = state * 1664525u + 1013904223u;
        first[i] = "ACGT"[state >> 30];
        second[i] = state >> 20 & 7 ? first[i] : "ACGT"[state >> 28 & 3];
    }
    printf("%d\n", align(first, n, second, n, row, gaps));
    free(first);
    free(second);
    free(row);
    free(gaps);
    return 0;
}
