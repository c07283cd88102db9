"""Functions with some candidates shared compute what they computed, and what does not is noticed."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from irgym.core.cost import Call, Validation
from irgym.core.environment import Bench
from irgym.core.schedule import replay
from irgym.envs.cse.environment import CSE
from irgym.envs.cse.running.arguments import Signature, signature_of
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


@pytest.mark.parametrize(
    ("header", "wanted"),
    [
        ("define dso_local i32 @f(ptr noundef %p, i64 %n) #0 {", Signature(("ptr", "i64"), "i32")),
        ("define internal void @f() {", Signature((), "void")),
        ("define internal fastcc void @f() {", None),
        ("define zeroext i8 @f(double %d, i1 %b) {", Signature(("double", "i1"), "i8")),
        ("define void @f(ptr byval(%struct.S) align 8 %p) {", None),
        ("define i32 @f(i32 %n, ...) {", None),
        ("define <4 x float> @f(<4 x float> %v) {", None),
        ("define i128 @f(i128 %n) {", None),
    ],
)
def test_signatures(header: str, wanted: Signature | None):
    assert signature_of(header, "@f") == wanted


@pytest.mark.parametrize("uri", KERNELS)
def test_the_kernels_compute_the_same(uri: str, bench: Bench):
    task = task_of(uri)
    everything = range(len(task.names))
    for shared in (everything, everything[::2]):
        said = compared(bench, task, shared, inputs=1)
        assert said.ok, said.detail


def test_most_kernels_can_be_run(bench: Bench):
    said = [compared(bench, task, (0,)) for task in map(task_of, KERNELS)]
    assert sum(one.checked for one in said) > 0.8 * len(said)


def test_a_wrong_choice_is_noticed(bench: Bench):
    task = task_of("cse://kernels/matrices.c#transpose")
    name = task.analysed.function.name
    said = bench.call(Call("wrong_sharing:compared", (str(task.module), name, (0,), 2, 0)))
    assert not said.ok and ("differ" in said.detail or "ended the process" in said.detail)


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
STRUCT = """
struct S { int a[9]; };
int f(struct S s, int n) { int t = s.a[n]; return t > 1 ? t + s.a[n] : t; }
"""


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (NOWHERE, "ended the process"),
        (ENDLESS, "did not end within"),
        (CONSTANT, "makes the same of all"),
        (STRUCT, "cannot be made up"),
        (ADDRESSES, "depends on addresses"),
    ],
)
def test_what_cannot_be_checked_is_told(tmp_path: Path, bench: Bench, body: str, why: str):
    file = tmp_path / "code.c"
    file.write_text(f"{body}\n")
    task = task_of(f"cse:{file}#f")
    said = compared(bench, task, range(len(task.names)))
    assert said.ok and not said.checked and why in said.blind


def test_code_for_other_machines_is_not_run(bench: Bench):
    task = CSE.task("cse://kernels/sorting.c#sift", target="aarch64")
    said = bench.call(task.validation(replay(task, task.pipeline("all")), 2, 0))
    assert said.ok and (runs_here(task.target) or "code for another machine is not run" in said.blind)
