// Runs each case of cases.h on the same inputs as its reference, and compares the results.
//
// Inputs are multiples of 1/16 in [-1/2, 1/2], so that sums of products are exact however they are ordered.
// What lies around the arrays must stay as it was.

#define _GNU_SOURCE
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

typedef struct {
    int number;           // what it is called by
    int arrays, results;  // how many arrays it takes, and how many of them, the last ones, it fills
    const long *sizes;    // elements of each
    void (*ours)(float **), (*reference)(float **);
} Case;

#include "cases.h"

enum { GUARD = 64, MOST = 64 };
static const float MARK = 12345.5f;
static const double ALLOWED = 1e-4;

static sigjmp_buf stopped;
static volatile int current;

static void stop(int signal, siginfo_t *info, void *context) {
    (void)info;
    const uint8_t *code = (const uint8_t *)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
    printf("STOPPED %d signal %d at", current, signal);
    for (int place = 0; place < 12; ++place) printf(" %02x", code[place]);
    puts("");
    siglongjmp(stopped, 1);
}

static float drawn(void) {
    static uint64_t state = 88172645463325252u;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return ((int)((state >> 33) % 17) - 8) / 16.0f;
}

static float *array(long size) {
    float *whole = aligned_alloc(64, (4 * (size + 2 * GUARD) + 63) / 64 * 64);
    if (!whole) abort();
    for (long place = 0; place < size + 2 * GUARD; ++place) whole[place] = MARK;
    return whole + GUARD;
}

static int intact(const float *array, long size) {
    for (int place = 0; place < GUARD; ++place)
        if (array[-1 - place] != MARK || array[size + place] != MARK) return 0;
    return 1;
}

static int same(float ours, float theirs) {
    if (isnan(theirs) || isinf(theirs)) return isnan(theirs) ? isnan(ours) : ours == theirs;
    return fabs((double)ours - theirs) <= ALLOWED * fmax(1.0, fabs((double)theirs));
}

static int right(const Case *one, float **ours, float **theirs) {
    for (int place = 0; place < one->arrays; ++place) {
        long size = one->sizes[place];
        if (!intact(ours[place], size)) return 0;
        for (long element = 0; element < size; ++element)
            if (!same(ours[place][element], theirs[place][element])) return 0;
    }
    return 1;
}

int main(void) {
    struct sigaction action = {.sa_sigaction = stop, .sa_flags = SA_SIGINFO};
    sigaction(SIGILL, &action, NULL);
    sigaction(SIGSEGV, &action, NULL);
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (volatile size_t number = 0; number < sizeof CASES / sizeof *CASES; ++number) {
        const Case *one = CASES + number;
        float *ours[MOST], *theirs[MOST];
        current = one->number;
        for (int place = 0; place < one->arrays; ++place) {
            long size = one->sizes[place];
            ours[place] = array(size);
            theirs[place] = array(size);
            int given = place < one->arrays - one->results;
            for (long element = 0; element < size; ++element)
                ours[place][element] = theirs[place][element] = given ? drawn() : 0.0f;
        }
        if (!sigsetjmp(stopped, 1)) {
            one->reference(theirs);
            one->ours(ours);
            printf("%s %d\n", right(one, ours, theirs) ? "RIGHT" : "WRONG", one->number);
        }
        for (int place = 0; place < one->arrays; ++place) {
            free(ours[place] - GUARD);
            free(theirs[place] - GUARD);
        }
    }
    return 0;
}
