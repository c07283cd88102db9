"""Functions with some candidates shared compute what they computed, and what does not is noticed."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from irgym.envs.cse.running.kinds import scalars

from irgym.core.cost import Call, Validation
from irgym.core.environment import Bench
from irgym.core.schedule import replay
from irgym.envs.cse.environment import CSE
from irgym.envs.cse.state import CseState
from irgym.envs.cse.task import CseTask
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


@pytest.mark.parametrize("uri", KERNELS)
def test_the_kernels_compute_the_same(uri: str, bench: Bench):
    task = task_of(uri)
    everything = range(len(task.names))
    for shared in (everything, everything[::2]):
        said = compared(bench, task, shared, inputs=1)
        assert said.ok, said.detail


def test_most_kernels_can_be_run(bench: Bench):
    said = [compared(bench, task, (0,)) for task in map(task_of, KERNELS)]
    assert sum(one.checked for one in said) > 0.9 * len(said)


def test_a_wrong_choice_is_noticed(bench: Bench):
    task = task_of("cse://kernels/matrices.c#transpose")
    name = task.analysed.function.name
    said = bench.call(Call("wrong_sharing:compared", (str(task.module), name, (0,), 2, 0)))
    assert not said.ok and ("differ" in said.detail or "ended the process" in said.detail)


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
def test_what_functions_need_is_made_up(tmp_path: Path, bench: Bench, body: str):
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
ADDRESSES = """
void f(int **p, int n) { int s = n * 3; p[0] = &s; if (n > 5) s += n * 3; }
"""
CONSTANT = "int f(int *p, int n) { int s = 0; if (p[n] > 1) s = p[n] * 0; return s; }"


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (NOWHERE, "ended the process"),
        (ENDLESS, "did not end within"),
        (CONSTANT, "does the same in all"),
        (ADDRESSES, "depends on addresses"),
    ],
)
def test_what_cannot_be_checked_is_told(tmp_path: Path, bench: Bench, body: str, why: str):
    file = tmp_path / "code.c"
    file.write_text(f"{body}\n")
    task = task_of(f"cse:{file}#f")
    said = compared(bench, task, range(len(task.names)))
    assert said.ok and not said.checked and why in said.blind


@pytest.mark.parametrize(
    ("kind", "wanted"),
    [
        ("i32", [(0, "i32")]),
        ("<2 x float>", [(0, "float"), (4, "float")]),
        ("[2 x { i8, i32 }]", [(0, "i8"), (4, "i32"), (8, "i8"), (12, "i32")]),
        ("{ i8, { i16, ptr }, i8 }", [(0, "i8"), (8, "i16"), (16, "ptr"), (24, "i8")]),
        ("%struct.S", None),
        ("x86_fp80", None),
    ],
)
def test_values_are_found_in_larger_ones(kind: str, wanted: list[tuple[int, str]] | None):
    assert scalars(kind) == wanted


def test_code_for_other_machines_is_not_run(bench: Bench):
    task = CSE.task("cse://kernels/sorting.c#sift", target="aarch64")
    said = bench.call(task.validation(replay(task, task.pipeline("all")), 2, 0))
    assert said.ok and (runs_here(task.target) or "code for another machine is not run" in said.blind)
