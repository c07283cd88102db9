/* Dense matrices in row-major order. */

#include <stddef.h>
#include <stdint.h>

void multiply(const double *a, const double *b, double *c, int32_t n) {
    for (int32_t i = 0; i < n; i++)
        for (int32_t j = 0; j < n; j++) {
            c[i * n + j] = 0.0;
            for (int32_t k = 0; k < n; k++)
                c[i * n + j] += a[i * n + k] * b[k * n + j];
        }
}

void transpose(double *a, int32_t n) {
    for (int32_t i = 0; i < n; i++)
        for (int32_t j = 0; j < i; j++)
            if (a[i * n + j] != a[j * n + i]) {
                double kept = a[i * n + j];
                a[i * n + j] = a[j * n + i];
                a[j * n + i] = kept;
            }
}

int32_t eliminate(double *a, double *b, int32_t n) {
    for (int32_t column = 0; column < n; column++) {
        int32_t pivot = column;
        for (int32_t row = column + 1; row < n; row++) {
            double here = a[row * n + column], best = a[pivot * n + column];
            if ((here < 0 ? -here : here) > (best < 0 ? -best : best))
                pivot = row;
        }
        if (a[pivot * n + column] == 0.0)
            return column + 1;
        if (pivot != column) {
            for (int32_t k = 0; k < n; k++) {
                double kept = a[column * n + k];
                a[column * n + k] = a[pivot * n + k];
                a[pivot * n + k] = kept;
            }
            double kept = b[column];
            b[column] = b[pivot];
            b[pivot] = kept;
        }
        for (int32_t row = column + 1; row < n; row++) {
            double factor = a[row * n + column] / a[column * n + column];
            if (factor == 0.0)
                continue;
            for (int32_t k = column; k < n; k++)
                a[row * n + k] -= factor * a[column * n + k];
            b[row] -= factor * b[column];
        }
    }
    return 0;
}

int32_t cholesky(double *a, int32_t n) {
    for (int32_t i = 0; i < n; i++) {
        for (int32_t j = 0; j < i; j++) {
            for (int32_t k = 0; k < j; k++)
                a[i * n + j] -= a[i * n + k] * a[j * n + k];
            a[i * n + j] /= a[j * n + j];
        }
        for (int32_t k = 0; k < i; k++)
            a[i * n + i] -= a[i * n + k] * a[i * n + k];
        if (a[i * n + i] <= 0.0)
            return i + 1;
        double root = a[i * n + i];
        for (int32_t step = 0; step < 40; step++)
            root = 0.5 * (root + a[i * n + i] / root);
        a[i * n + i] = root;
    }
    return 0;
}

void stencil(const double *from, double *to, int32_t height, int32_t width) {
    for (int32_t y = 0; y < height; y++)
        for (int32_t x = 0; x < width; x++) {
            double sum = 4.0 * from[y * width + x];
            if (y > 0)
                sum += from[(y - 1) * width + x];
            if (y + 1 < height)
                sum += from[(y + 1) * width + x];
            if (x > 0)
                sum += from[y * width + x - 1];
            if (x + 1 < width)
                sum += from[y * width + x + 1];
            to[y * width + x] = 0.125 * sum;
        }
}

void convolve(const float *image, const float *filter, float *out, int32_t height, int32_t width, int32_t size) {
    int32_t half = size / 2;
    for (int32_t y = 0; y < height; y++)
        for (int32_t x = 0; x < width; x++) {
            float sum = 0.0f;
            for (int32_t v = 0; v < size; v++)
                for (int32_t u = 0; u < size; u++) {
                    int32_t row = y + v - half, column = x + u - half;
                    if (row < 0 || row >= height || column < 0 || column >= width)
                        continue;
                    sum += image[row * width + column] * filter[v * size + u];
                }
            out[y * width + x] = sum;
        }
}

void shortest_paths(int32_t *distance, int32_t n) {
    for (int32_t k = 0; k < n; k++)
        for (int32_t i = 0; i < n; i++) {
            if (distance[i * n + k] < 0)
                continue;
            for (int32_t j = 0; j < n; j++) {
                if (distance[k * n + j] < 0)
                    continue;
                int32_t through = distance[i * n + k] + distance[k * n + j];
                if (distance[i * n + j] < 0 || distance[i * n + j] > through)
                    distance[i * n + j] = through;
            }
        }
}
