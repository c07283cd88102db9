"""Estimates cover what decides whether sharing pays, and agree with scores of real code."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from irgym.core.bench import Bench
from irgym.core.schedule import replay
from irgym.envs.cse.environment import CSE
from irgym.envs.cse.estimates.estimate import Machine
from irgym.envs.cse.estimates.estimator import Estimator
from irgym.envs.cse.estimates.operations import members
from irgym.envs.cse.state import CseState
from irgym.envs.cse.task import CseTask

X86 = Machine(lasting=5, integers=13, folds=True)

EXIT = """
struct S { short kind; struct S *up; };
int other(struct S *);
void drop(struct S *);
int f(struct S *s, int kind) {
  if (s->kind == kind) return 1;
  short kept = s->kind;
  s->kind = (short)kind;
  if (!other(s->up)) { s->kind = kept; return 0; }
  s->kind = kept;
  drop(s);
  s->kind = (short)kind;
  return 1;
}
"""
"""Sharing the first load keeps its value from before the early exit until after a call."""

CROWD = """
int other(int);
int f(int *p) {
  int a = p[0], b = p[1], c = p[2], d = p[3], e = p[4], g = p[5], h = p[6], i = p[7];
  int s = other(a) * (p[8] / 7);
  if (s > 4) s += p[8] / 7;
  return s + (a ^ b) + (c ^ d) * (e ^ g) + (h ^ i) + a * b * c * d * e * g * h * i;
}
"""
FLOATS = """
double other(double);
double f(double *p, double x) { double y = x * x; double z = other(y); return y > 3 ? z + y : z; }
"""


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    with CSE.bench() as opened:
        yield opened


def task_of(folder: Path, text: str) -> CseTask:
    file = folder / "code.c"
    file.write_text(text)
    return CSE.task(f"cse:{file}#f", target="x86-64")


def estimator(task: CseTask, machine: Machine = X86) -> Estimator:
    return Estimator(task.analysed, task.surroundings.liveness, machine)


def scores(bench: Bench, task: CseTask, *choices: frozenset[int]) -> list[float]:
    return [
        measurement.cost
        for measurement in bench.evaluator.evaluate([task.job(CseState(choice)) for choice in choices])
    ]


def test_a_frame_is_set_up_behind_an_early_exit(tmp_path: Path, bench: Bench):
    task = task_of(tmp_path, EXIT)
    nothing, each = estimator(task).around(())
    assert nothing.entered < 1.0
    [load] = [place for place, estimate in enumerate(each) if estimate.entered == 1.0]
    assert each[load].frame > nothing.frame
    before, after = scores(bench, task, frozenset(), frozenset([load]))
    assert after > before


def test_values_that_do_not_fit_into_lasting_registers_are_on_the_stack(tmp_path: Path):
    task = task_of(tmp_path, CROWD)
    assert estimator(task, Machine(lasting=16, integers=32, folds=True)).estimate(()).stack == 0
    crowded = estimator(task).estimate(())
    assert crowded.lasting > 5 and crowded.stack > 0


def test_no_register_for_floating_point_numbers_outlives_a_call(tmp_path: Path):
    estimate = estimator(task_of(tmp_path, FLOATS)).estimate(())
    assert estimate.floats >= 1 and estimate.stack > 0


def test_loads_are_parts_of_other_instructions_where_the_processor_has_such(tmp_path: Path):
    task = task_of(tmp_path, "int f(int *p, int n) { return p[1] + n; }")
    with_parts = estimator(task).estimate(())
    without = estimator(task, Machine(lasting=5, integers=13, folds=False)).estimate(())
    assert with_parts.work < without.work


def test_estimates_that_follow_from_others_are_what_they_are_alone():
    rng = np.random.default_rng(0)
    for uri in (*CSE.dataset("kernels").train, *CSE.dataset("kernels").test):
        task = CSE.task(uri, target="x86-64")
        model = estimator(task)
        number = len(task.names)
        drawn = frozenset(np.flatnonzero(rng.integers(2, size=number)).tolist())
        for chosen in (frozenset[int](), drawn, frozenset(range(number))):
            _, each = model.around(chosen)
            for place, found in enumerate(each):
                alone = estimator(task).estimate(chosen ^ {place})
                np.testing.assert_allclose(found.numbers, alone.numbers, err_msg=uri)


def test_no_change_of_one_candidate_betters_what_is_settled():
    for uri in CSE.dataset("kernels").train:
        task = CSE.task(uri, target="x86-64")
        model = estimator(task)
        found, each = model.around(model.settled)
        nothing, everything = model.estimate(()), model.estimate(range(len(task.names)))
        assert found.cost <= min(
            [nothing.cost, everything.cost, *(estimate.cost + 1e-6 for estimate in each)]
        )


def test_choices_by_estimates_are_better_than_sharing_all(bench: Bench):
    tasks = [CSE.task(uri, target="x86-64") for uri in CSE.dataset("kernels").train]
    jobs = [task.job(replay(task, task.pipeline(name))) for task in tasks for name in ("estimated", "all")]
    costs = np.array([measurement.cost for measurement in bench.evaluator.evaluate(jobs)]).reshape(-1, 2)
    assert np.log(costs[:, 0] / costs[:, 1]).mean() < 0


def test_estimated_gains_agree_with_those_of_real_code(bench: Bench):
    estimated: list[float] = []
    real: list[float] = []
    for uri in (*CSE.dataset("kernels").train, *CSE.dataset("kernels").test):
        task = CSE.task(uri, target="x86-64")
        nothing, each = estimator(task).around(())
        alone = [frozenset([place]) for place in range(len(each))]
        first, *others = scores(bench, task, frozenset(), *alone)
        estimated += [nothing.cost - estimate.cost for estimate in each]
        real += [first - second for second in others]
    ranks = [np.argsort(np.argsort(costs)) for costs in (estimated, real)]
    assert np.corrcoef(*ranks)[0, 1] > 0.3


def test_members_of_sets():
    assert list(members(0)) == [] and list(members(0b1001100)) == [2, 3, 6]
