"""Functions behave the same under a choice, and faults are noticed."""

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

from irgym import tune
from irgym.api.requests import Searching
from irgym.core.bench import Bench
from irgym.core.cost import Call, Validation
from irgym.core.schedule import replay
from irgym.envs.cse.environment import CSE
from irgym.envs.cse.state import CseState
from irgym.envs.cse.task import CseTask
from irgym.llvmir.programs.clang import compiled
from irgym.measure.target import runs_here

KERNELS = [*CSE.dataset("kernels").train, *CSE.dataset("kernels").test]


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    with CSE.bench() as opened:
        yield opened


def compared(bench: Bench, task: CseTask, shared: Iterable[int], inputs: int = 2) -> Validation:
    return bench.call(task.validation(CseState(frozenset(shared)), inputs, 0))


def task_of(uri: str) -> CseTask:
    task = CSE.task(uri)
    if not runs_here(task.target):
        pytest.skip(f"needs a processor that runs {task.target.name}")
    return task


@pytest.fixture(scope="module")
def first_shared(bench: Bench) -> Callable[[str], Validation]:
    """Return a function that checks a kernel with the first candidate shared, once."""
    return cache(lambda uri: compared(bench, task_of(uri), (0,)))


@pytest.mark.parametrize("uri", KERNELS)
def test_the_kernels_compute_the_same(uri: str, bench: Bench, first_shared: Callable[[str], Validation]):
    task = task_of(uri)
    for said in (first_shared(uri), compared(bench, task, range(len(task.names)), inputs=1)):
        assert said.ok, said.detail


def test_most_kernels_can_be_run(first_shared: Callable[[str], Validation]):
    said = [first_shared(uri) for uri in KERNELS]
    assert sum(validation.checked for validation in said) > 0.9 * len(said)


def test_a_wrong_choice_is_noticed(bench: Bench):
    task = task_of("cse://kernels/matrices.c#transpose")
    name = task.analysed.function.name
    said = bench.call(Call("wrong_sharing:compared", (str(task.module), name, (0,), 2, 0)))
    assert not said.ok and said.detail


STRUCT = """
struct S { int a[9]; };
int f(struct S s, int n) { int t = s.a[n]; return t > 1 ? t + s.a[n] : t; }
"""
PAIR = """
struct P { long a; double b; };
struct P f(struct P p, long *n) { if ((p.a ^ *n) > 4) { *n = p.a ^ *n; p.b += 1; } return p; }
"""
MISSING = "int other(int); int f(int *p, int n) { int s = p[n]; if (s > 1) s += p[n] * other(s); return s; }"
POINTERS = """
struct T { int (*call)(int); struct T *next; };
int f(struct T *t, int n) {
  int s = n;
  for (; t; t = t->next) { s += t->call(n / 3); if (s > 5) s += n / 3 + t->call(2); }
  return s;
}
"""
GLOBALS = """
extern int elsewhere[4]; static int here;
void f(int n) { here += n * 3; if (elsewhere[1] > 2) here += n * 3; }
int g(void) { return here; }
"""
ALLOCATED = """
#include <stdlib.h>
int *f(int n) {
  int *p = malloc(n * 4 + 4);
  if (!p) abort();
  p[0] = 1;
  if (n > 3) p[1] = n * 4 + 4;
  return p;
}
"""
LEAVES = """
_Noreturn void fail(int);
int f(int *p, int n) { if (p[n] > 5) fail(p[n] * 2); return p[n] * 2; }
"""
MANY = "int f(const char *s, int n, ...) { if (s[n] * n > 9) return s[n] * n; return n; }"


@pytest.mark.parametrize(
    "body", [STRUCT, PAIR, MISSING, POINTERS, GLOBALS, ALLOCATED, LEAVES, MANY], ids=range(8)
)
def test_arguments_memory_and_callees_are_made_up(tmp_path: Path, bench: Bench, body: str):
    file = tmp_path / "code.c"
    file.write_text(f"{body}\n")
    task = task_of(f"cse:{file}#f")
    assert task.names
    said = compared(bench, task, range(len(task.names)))
    assert said.checked, said


NOWHERE = """
int f(int n) { int *p = (int *)(long)(n + 8), s = p[0]; if (s > 1) s += p[0] * n; return s; }
"""
ENDLESS = """
int f(int *p, int n) {
  int s = p[n] * n;
  for (;;) { if (s > 1) s += p[n] * n; *(volatile int *)p = s; }
}
"""
HIDDEN = """
int f(int *p, unsigned n) {
  unsigned h = n * 2654435761u;
  h = (h ^ h >> 15) * 2246822519u;
  if (p[n & 7] > 5) p[9] = 1;
  return (h ^ h >> 13) * 3266489917u == 77777u ? p[n & 7] + 1 : (int)n;
}
"""


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (NOWHERE, "no object"),
        (ENDLESS, "too many steps"),
        (HIDDEN, "no random world shows an effect of"),
    ],
)
def test_a_check_that_is_blind_says_why(tmp_path: Path, bench: Bench, body: str, why: str):
    file = tmp_path / "code.c"
    file.write_text(f"{body}\n")
    task = task_of(f"cse:{file}#f")
    said = compared(bench, task, range(len(task.names)))
    assert said.ok and not said.checked and why in said.blind


def test_code_for_other_machines_is_not_run(bench: Bench):
    task = CSE.task("cse://kernels/sorting.c#sift", target="aarch64")
    said = bench.call(task.validation(replay(task, task.pipeline("all")), 2, 0))
    assert said.ok and (runs_here(task.target) or "code for another machine is not run" in said.blind)


CASES = Path(__file__).parents[3] / "cases" / "cse"


def test_debug_information_makes_no_difference(tmp_path: Path, bench: Bench):
    for options in ((), ("-g",)):
        module = tmp_path / f"extern{''.join(options)}.ll"
        module.write_bytes(compiled(CASES / "extern_g.c", "x86-64", options))
        task = task_of(f"cse:{module}#f")
        said = compared(bench, task, range(len(task.names)))
        assert task.names and said.checked, said


def test_uncheckable_candidates_are_named(tmp_path: Path, bench: Bench):
    file = tmp_path / "code.c"
    file.write_text(HIDDEN)
    task = task_of(f"cse:{file}#f")
    said = compared(bench, task, range(len(task.names)))
    assert said.unseen and {*said.unseen} <= {*task.names} and "branches were taken" in said.tolerance
    result = tune(f"cse:{file}#f", searching=Searching(evaluations=8))
    assert result.validated and "share" not in result.schedule
