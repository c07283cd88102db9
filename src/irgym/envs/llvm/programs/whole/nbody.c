// Bodies that attract each other, stepped by the leapfrog method. Argument: number of steps.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define BODIES 24

static double place[BODIES][3], speed[BODIES][3], mass[BODIES];

static void set_up(void) {
    unsigned state = 12345;
    for (int i = 0; i < BODIES; i++) {
        mass[i] = 1.0 + i % 5;
        for (int k = 0; k < 3; k++) {
            state = state * 1664525u + 1013904223u;
            place[i][k] = (state >> 8) / 16777216.0 * 10.0;
            state = state * 1664525u + 1013904223u;
            speed[i][k] = (state >> 8) / 16777216.0 - 0.5;
        }
    }
}

static void step(double dt) {
    for (int i = 0; i < BODIES; i++) {
        for (int j = i + 1; j < BODIES; j++) {
            double d[3], square = 0.01;
            for (int k = 0; k < 3; k++) {
                d[k] = place[j][k] - place[i][k];
                square += d[k] * d[k];
            }
            double pull = dt / (square * sqrt(square));
            for (int k = 0; k < 3; k++) {
                speed[i][k] += d[k] * pull * mass[j];
                speed[j][k] -= d[k] * pull * mass[i];
            }
        }
    }
    for (int i = 0; i < BODIES; i++)
        for (int k = 0; k < 3; k++) place[i][k] += dt * speed[i][k];
}

static double energy(void) {
    double sum = 0.0;
    for (int i = 0; i < BODIES; i++)
        for (int k = 0; k < 3; k++) sum += 0.5 * mass[i] * speed[i][k] * speed[i][k];
    return sum;
}

int main(int count, char **words) {
    int steps = count > 1 ? atoi(words[1]) : 60000;
    set_up();
    for (int i = 0; i < steps; i++) step(1e-4);
    printf("%.9f %.9f\n", energy(), place[0][0]);
    return 0;
}
