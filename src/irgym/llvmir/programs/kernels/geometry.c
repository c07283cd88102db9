/* Points, boxes, particles and pixels. */

#include <stddef.h>
#include <stdint.h>

typedef struct {
    double x, y, z;
} Point;

typedef struct {
    Point at, speed;
    double mass;
    int32_t alive;
} Particle;

void attract(Particle *particles, int32_t n, double step, double softening) {
    for (int32_t i = 0; i < n; i++) {
        if (!particles[i].alive)
            continue;
        for (int32_t j = 0; j < n; j++) {
            if (i == j || !particles[j].alive)
                continue;
            double dx = particles[j].at.x - particles[i].at.x;
            double dy = particles[j].at.y - particles[i].at.y;
            double dz = particles[j].at.z - particles[i].at.z;
            double square = dx * dx + dy * dy + dz * dz + softening;
            double pull = particles[j].mass / (square * square);
            particles[i].speed.x += step * pull * dx;
            particles[i].speed.y += step * pull * dy;
            particles[i].speed.z += step * pull * dz;
        }
    }
    for (int32_t i = 0; i < n; i++) {
        if (!particles[i].alive)
            continue;
        particles[i].at.x += step * particles[i].speed.x;
        particles[i].at.y += step * particles[i].speed.y;
        particles[i].at.z += step * particles[i].speed.z;
        if (particles[i].at.x < 0.0 || particles[i].at.x > 1.0)
            particles[i].speed.x = -particles[i].speed.x;
        if (particles[i].at.y < 0.0 || particles[i].at.y > 1.0)
            particles[i].speed.y = -particles[i].speed.y;
        if (particles[i].at.z < 0.0 || particles[i].at.z > 1.0)
            particles[i].speed.z = -particles[i].speed.z;
    }
}

int32_t inside(const double *xs, const double *ys, int32_t n, double x, double y) {
    int32_t found = 0;
    for (int32_t i = 0, j = n - 1; i < n; j = i++) {
        if ((ys[i] > y) != (ys[j] > y) && x < (xs[j] - xs[i]) * (y - ys[i]) / (ys[j] - ys[i]) + xs[i])
            found = !found;
    }
    return found;
}

int32_t clip_line(double *x0, double *y0, double *x1, double *y1, double width, double height) {
    for (int32_t tries = 0; tries < 8; tries++) {
        int32_t first = (*x0 < 0 ? 1 : 0) | (*x0 > width ? 2 : 0) | (*y0 < 0 ? 4 : 0) | (*y0 > height ? 8 : 0);
        int32_t last = (*x1 < 0 ? 1 : 0) | (*x1 > width ? 2 : 0) | (*y1 < 0 ? 4 : 0) | (*y1 > height ? 8 : 0);
        if (!(first | last))
            return 1;
        if (first & last)
            return 0;
        int32_t code = first ? first : last;
        double x, y;
        if (code & 8) {
            x = *x0 + (*x1 - *x0) * (height - *y0) / (*y1 - *y0);
            y = height;
        } else if (code & 4) {
            x = *x0 + (*x1 - *x0) * (0 - *y0) / (*y1 - *y0);
            y = 0;
        } else if (code & 2) {
            y = *y0 + (*y1 - *y0) * (width - *x0) / (*x1 - *x0);
            x = width;
        } else {
            y = *y0 + (*y1 - *y0) * (0 - *x0) / (*x1 - *x0);
            x = 0;
        }
        if (code == first) {
            *x0 = x;
            *y0 = y;
        } else {
            *x1 = x;
            *y1 = y;
        }
    }
    return 0;
}

void blend(uint8_t *to, const uint8_t *from, size_t pixels, int32_t mode) {
    for (size_t i = 0; i < pixels; i++)
        for (size_t channel = 0; channel < 3; channel++) {
            int32_t a = to[4 * i + channel], b = from[4 * i + channel], alpha = from[4 * i + 3], mixed;
            if (mode == 0)
                mixed = b;
            else if (mode == 1)
                mixed = a * b / 255;
            else if (mode == 2)
                mixed = 255 - (255 - a) * (255 - b) / 255;
            else
                mixed = a < 128 ? 2 * a * b / 255 : 255 - 2 * (255 - a) * (255 - b) / 255;
            to[4 * i + channel] = (uint8_t)((a * (255 - alpha) + mixed * alpha) / 255);
        }
}

void fill(uint8_t *image, int32_t height, int32_t width, int32_t y, int32_t x, uint8_t colour, int32_t *stack,
          int32_t room) {
    uint8_t old = image[y * width + x];
    int32_t depth = 0;
    if (old == colour || room < 1)
        return;
    stack[depth++] = y * width + x;
    while (depth > 0) {
        int32_t place = stack[--depth];
        int32_t row = place / width, column = place % width;
        if (image[row * width + column] != old)
            continue;
        image[row * width + column] = colour;
        if (row > 0 && image[(row - 1) * width + column] == old && depth < room)
            stack[depth++] = (row - 1) * width + column;
        if (row + 1 < height && image[(row + 1) * width + column] == old && depth < room)
            stack[depth++] = (row + 1) * width + column;
        if (column > 0 && image[row * width + column - 1] == old && depth < room)
            stack[depth++] = row * width + column - 1;
        if (column + 1 < width && image[row * width + column + 1] == old && depth < room)
            stack[depth++] = row * width + column + 1;
    }
}

int32_t live(const uint8_t *now, uint8_t *next, int32_t height, int32_t width) {
    int32_t alive = 0;
    for (int32_t y = 0; y < height; y++)
        for (int32_t x = 0; x < width; x++) {
            int32_t up = (y + height - 1) % height, down = (y + 1) % height;
            int32_t left = (x + width - 1) % width, right = (x + 1) % width;
            int32_t near = now[up * width + left] + now[up * width + x] + now[up * width + right] +
                           now[y * width + left] + now[y * width + right] + now[down * width + left] +
                           now[down * width + x] + now[down * width + right];
            if (now[y * width + x])
                next[y * width + x] = near == 2 || near == 3;
            else
                next[y * width + x] = near == 3;
            alive += next[y * width + x];
        }
    return alive;
}
