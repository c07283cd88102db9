// Search of patterns in a text, by the method of Knuth, Morris and Pratt, and by Horspool's. Argument: length.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int by_prefixes(const char *text, int n, const char *pattern, int m) {
    int next[64] = {0}, found = 0;
    for (int i = 1, k = 0; i < m; i++) {
        while (k && pattern[i] != pattern[k]) k = next[k - 1];
        if (pattern[i] == pattern[k]) k++;
        next[i] = k;
    }
    for (int i = 0, k = 0; i < n; i++) {
        while (k && text[i] != pattern[k]) k = next[k - 1];
        if (text[i] == pattern[k]) k++;
        if (k == m) {
            found++;
            k = next[k - 1];
        }
    }
    return found;
}

static int by_skips(const char *text, int n, const char *pattern, int m) {
    int skip[256], found = 0;
    for (int i = 0; i < 256; i++) skip[i] = m;
    for (int i = 0; i < m - 1; i++) skip[(unsigned char)pattern[i]] = m - 1 - i;
    for (int i = 0; i + m <= n; i += skip[(unsigned char)text[i + m - 1]]) {
        int k = m - 1;
        while (k >= 0 && text[i + k] == pattern[k]) k--;
        found += k < 0;
    }
    return found;
}

int main(int count, char **words) {
    static const char *const patterns[] = {"abab", "bcab", "cabcabc", "aaaaaaaa", "bacbacba"};
    int n = count > 1 ? atoi(words[1]) : 4000000;
    if (n < 64 || n > 1000000000) return 1;
    char *text = malloc((size_t)n + 1);
    if (!text) return 2;
    unsigned state = 3;
    for (int i = 0; i < n; i++) {
        state = state * 1103515245u + 12345u;
        text[i] = "abc"[(state >> 16) % 3];
    }
    text[n] = 0;
    for (int p = 0; p < 5; p++) {
        int m = (int)strlen(patterns[p]);
        printf("%d %d\n", by_prefixes(text, n, patterns[p], m), by_skips(text, n, patterns[p], m));
    }
    free(text);
    return 0;
}
