/* Makes the processor look as if it had AVX2 and nothing wider to all that asks it. See run.sh.
 *
 * Loaded with LD_PRELOAD into every process of a run. Linux lets a thread ask that CPUID faults; the fault is
 * answered here, with what the processor says less the features to hide. Other faults go where the process
 * wants them: its own handlers are kept beside this one. A call of exec ends the faulting, and loads this anew.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

enum { ARCH_CPUID = 0x1012 };

static struct sigaction wanted; /* what the process itself wants done about SIGSEGV */
static int (*set_action)(int, const struct sigaction *, struct sigaction *);

static uint32_t bits(const int *numbers, int count) {
    uint32_t all = 0;
    for (int i = 0; i < count; i++) all |= 1u << numbers[i];
    return all;
}
#define BITS(...) bits((const int[]){__VA_ARGS__}, sizeof((int[]){__VA_ARGS__}) / sizeof(int))

/* Bits as in Intel's manual, volume 2A, CPUID. */
static void hide(uint32_t leaf, uint32_t subleaf, uint32_t *a, uint32_t *b, uint32_t *c, uint32_t *d, int intel) {
    if (leaf == 1 && intel) {
        *a = 0x306c3; /* Haswell: compilers tune by the model */
    } else if (leaf == 7 && subleaf == 0) {
        *b &= ~BITS(16, 17, 21, 26, 27, 28, 30, 31); /* AVX-512 F, DQ, IFMA, PF, ER, CD, BW, VL */
        *c &= ~BITS(1, 6, 11, 12, 14);               /* VBMI, VBMI2, VNNI, BITALG, VPOPCNTDQ */
        *d &= ~BITS(2, 3, 8, 22, 23, 24, 25);        /* 4VNNIW, 4FMAPS, VP2INTERSECT, FP16, AMX */
    } else if (leaf == 7 && subleaf == 1) {
        *a &= ~BITS(4, 5, 21, 23);      /* AVX-VNNI, AVX512-BF16, AMX-FP16, AVX-IFMA */
        *d &= ~BITS(4, 5, 8, 10, 19);   /* AVX-VNNI-INT8, AVX-NE-CONVERT, AMX-COMPLEX, AVX-VNNI-INT16, AVX10 */
    } else if (leaf == 0xd && subleaf == 0) {
        *a &= ~BITS(5, 6, 7, 17, 18); /* the state of AVX-512 and AMX */
    }
}

static void ask(uint32_t leaf, uint32_t subleaf, uint32_t *a, uint32_t *b, uint32_t *c, uint32_t *d) {
    __asm__ volatile("cpuid" : "=a"(*a), "=b"(*b), "=c"(*c), "=d"(*d) : "a"(leaf), "c"(subleaf));
}

static void answer(greg_t *registers) {
    uint32_t leaf = registers[REG_RAX], subleaf = registers[REG_RCX], a, b, c, d, vendor, ignored;
    syscall(SYS_arch_prctl, ARCH_CPUID, 1);
    ask(0, 0, &ignored, &vendor, &ignored, &ignored);
    ask(leaf, subleaf, &a, &b, &c, &d);
    syscall(SYS_arch_prctl, ARCH_CPUID, 0);
    hide(leaf, subleaf, &a, &b, &c, &d, vendor == 0x756e6547); /* "Genu" of GenuineIntel */
    registers[REG_RAX] = a;
    registers[REG_RBX] = b;
    registers[REG_RCX] = c;
    registers[REG_RDX] = d;
    registers[REG_RIP] += 2;
}

static void on_fault(int number, siginfo_t *info, void *context) {
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    if (info->si_code == SI_KERNEL && memcmp((void *)registers[REG_RIP], "\x0f\xa2", 2) == 0) {
        answer(registers);
    } else if (wanted.sa_flags & SA_SIGINFO) {
        wanted.sa_sigaction(number, info, context);
    } else if (wanted.sa_handler == SIG_DFL) {
        set_action(number, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
        if (info->si_code <= 0) raise(number); /* sent, not a fault: it does not happen again by itself */
    } else if (wanted.sa_handler != SIG_IGN) {
        wanted.sa_handler(number);
    }
}

int sigaction(int number, const struct sigaction *action, struct sigaction *before) {
    if (!set_action) *(void **)&set_action = dlsym(RTLD_NEXT, "sigaction");
    if (number != SIGSEGV) return set_action(number, action, before);
    struct sigaction old = wanted;
    if (action) wanted = *action;
    if (before) *before = old;
    return 0;
}

sighandler_t signal(int number, sighandler_t handler) {
    struct sigaction before, action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    return sigaction(number, &action, &before) ? SIG_ERR : before.sa_handler;
}

__attribute__((constructor)) static void start(void) {
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
    *(void **)&set_action = dlsym(RTLD_NEXT, "sigaction");
    set_action(SIGSEGV, &action, NULL);
    if (syscall(SYS_arch_prctl, ARCH_CPUID, 0)) _exit(78);
}
