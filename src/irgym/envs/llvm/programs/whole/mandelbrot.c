// The Mandelbrot set, in double precision. Argument: width and height in points.
#include <stdio.h>
#include <stdlib.h>

static int steps(double cx, double cy, int most) {
    double x = 0.0, y = 0.0;
    int n = 0;
    while (n < most && x * x + y * y <= 4.0) {
        double next = x * x - y * y + cx;
        y = 2.0 * x * y + cy;
        x = next;
        n++;
    }
    return n;
}

int main(int count, char **words) {
    int size = count > 1 ? atoi(words[1]) : 900;
    if (size < 1) return 1;
    unsigned long long sum = 0, inside = 0;
    for (int i = 0; i < size; i++)
        for (int j = 0; j < size; j++) {
            int n = steps(3.0 * j / size - 2.2, 3.0 * i / size - 1.5, 300);
            sum += n;
            inside += n == 300;
        }
    printf("%llu %llu\n", sum, inside);
    return 0;
}
