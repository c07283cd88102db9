#include <stdlib.h>
int base(int x) { return x * 3 + 1; }
extern int alias_of(int) __attribute__((alias("base")));
static int impl_a(int x) { return x * 5; }
static void *resolve(void) { return (void*)impl_a; }
int fast(int) __attribute__((ifunc("resolve")));
_Thread_local int tls;
static int count __attribute__((unused));
__attribute__((constructor)) static void begin(void) { count = 4; }
int f(int x, int n) { int a = alias_of(x * n); if (a > 3) { tls += x * n; a += fast(x * n + 1); } return a + fast(x * n + 1) + x * n + count; }
int g(int *p, int n) { int *q = p + n * 2; if (*q > 3) { p[n * 2] = 5; return q[1]; } return p[n * 2 + 1] + tls; }
