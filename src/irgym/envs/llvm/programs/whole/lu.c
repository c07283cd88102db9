// Systems of linear equations, by LU decomposition with partial pivoting. Argument: the size.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static int decompose(int n, double *a, int *order) {
    for (int k = 0; k < n; k++) {
        int best = k;
        for (int i = k + 1; i < n; i++)
            if (fabs(a[i * n + k]) > fabs(a[best * n + k])) best = i;
        if (a[best * n + k] == 0.0) return 0;
        order[k] = best;
        if (best != k)
            for (int j = 0; j < n; j++) {
                double kept = a[k * n + j];
                a[k * n + j] = a[best * n + j];
                a[best * n + j] = kept;
            }
        for (int i = k + 1; i < n; i++) {
            double factor = a[i * n + k] /= a[k * n + k];
            for (int j = k + 1; j < n; j++) a[i * n + j] -= factor * a[k * n + j];
        }
    }
    return 1;
}

static void solve(int n, const double *a, const int *order, double *x) {
    for (int k = 0; k < n; k++) {
        double kept = x[k];
        x[k] = x[order[k]];
        x[order[k]] = kept;
    }
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++) x[i] -= a[i * n + j] * x[j];
    for (int i = n - 1; i >= 0; i--) {
        for (int j = i + 1; j < n; j++) x[i] -= a[i * n + j] * x[j];
        x[i] /= a[i * n + i];
    }
}

int main(int count, char **words) {
    int n = count > 1 ? atoi(words[1]) : 1000;
    if (n < 1 || n > 8000) return 1;
    double *a = malloc(sizeof *a * n * n), *x = malloc(sizeof *x * n);
    int *order = malloc(sizeof *order * n);
    if (!a || !x || !order) return 2;
    unsigned state = 11;
    for (int i = 0; i < n * n; i++) {
        state = state * 1664525u + 1013904223u;
        a[i] = (state >> 8) / 16777216.0 - 0.5;
    }
    for (int i = 0; i < n; i++) x[i] = i % 7 - 3.0;
    if (!decompose(n, a, order)) return 3;
    solve(n, a, order, x);
    double sum = 0.0;
    for (int i = 0; i < n; i++) sum += x[i];
    printf("%.6f %.6f\n", sum, x[0]);
    free(a);
    free(x);
    free(order);
    return 0;
}
