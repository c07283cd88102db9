// Product of two square matrices of doubles. Argument: their size.
#include <stdio.h>
#include <stdlib.h>

static void multiply(int n, const double *a, const double *b, double *c) {
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            double sum = 0.0;
            for (int k = 0; k < n; k++) sum += a[i * n + k] * b[k * n + j];
            c[i * n + j] = sum;
        }
}

int main(int count, char **words) {
    int n = count > 1 ? atoi(words[1]) : 480;
    if (n < 1 || n > 4096) return 1;
    double *a = malloc(sizeof *a * n * n), *b = malloc(sizeof *b * n * n), *c = malloc(sizeof *c * n * n);
    if (!a || !b || !c) return 2;
    for (int i = 0; i < n * n; i++) {
        a[i] = (i % 17) - 8.0;
        b[i] = (i % 23) * 0.5;
    }
    multiply(n, a, b, c);
    double trace = 0.0;
    for (int i = 0; i < n; i++) trace += c[i * n + i];
    printf("%.6f %.6f\n", trace, c[n - 1]);
    free(a);
    free(b);
    free(c);
    return 0;
}
