"""Checks accept right programs, and refuse wrong ones and those that write out of bounds."""

import ctypes
from functools import partial
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch_mlir")

from irgym.base.errors import IrgymError
from irgym.core.cost import Outcome
from irgym.envs.linalg import runner
from irgym.envs.linalg.checking import prepared as checking
from irgym.envs.linalg.compiling import compiler
from irgym.envs.linalg.compiling.executable import Executable
from irgym.envs.linalg.importing.description import describe
from irgym.envs.linalg.programs.operators import Operator
from irgym.measure.machine import SLOT, Slot
from irgym.measure.target import host_target
from irgym.measure.timing import Timing

QUICK = Timing(budget_ns=1, fewest=1, most=1)

PLANTED = "another program"


def elementwise(arguments: str, result: str, *body: str) -> str:
    """Return a program on tensors of 12 x 10; `body` computes `%r` from `%a` and `%b`."""
    types = arguments.split()
    names = [f"%{name}" for name in "ab"[: len(types)]]
    maps = ", ".join(["affine_map<(i, j) -> (i, j)>"] * (len(types) + 1))
    tensors = [f"tensor<12x10x{kind}>" for kind in types]
    inputs = [f"%t{n}" for n in range(len(types))]
    signature = ", ".join(f"{name}: {tensor}" for name, tensor in zip(inputs, tensors, strict=True))
    block = ", ".join(f"{name}: {kind}" for name, kind in zip(names, types, strict=True))
    text = f"""func.func @main({signature}) -> tensor<12x10x{result}> {{
      %into = tensor.empty() : tensor<12x10x{result}>
      %0 = linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel", "parallel"]}}
          ins({", ".join(inputs)} : {", ".join(tensors)}) outs(%into : tensor<12x10x{result}>) {{
        ^bb0({block}, %o: {result}):
          {chr(10).join(body)}
          linalg.yield %r : {result}
      }} -> tensor<12x10x{result}>
      return %0 : tensor<12x10x{result}>
    }}"""
    return describe(text)[0]


def scaled(factor: str) -> str:
    return elementwise("f32", "f32", f"%c = arith.constant {factor} : f32", "%r = arith.mulf %a, %c : f32")


def integers(offset: int) -> str:
    return elementwise(
        "i32",
        "i32",
        "%c = arith.constant 100000 : i32",
        f"%d = arith.constant {offset} : i32",
        "%p = arith.muli %a, %c : i32",
        "%r = arith.addi %p, %d : i32",
    )


def masked(factor: str, mask: str = "-1.0e9") -> str:
    return elementwise(
        "f32 i1",
        "f32",
        f"%c = arith.constant {mask} : f32",
        f"%f = arith.constant {factor} : f32",
        "%x = arith.mulf %a, %f : f32",
        "%r = arith.select %b, %x, %c : f32",
    )


def added_mask(factor: str) -> str:
    """Return a program that adds -1e9 to masked logits."""
    return elementwise(
        "f32 i1",
        "f32",
        "%c = arith.constant -1.0e9 : f32",
        f"%f = arith.constant {factor} : f32",
        "%m = arith.uitofp %b : i1 to f32",
        "%n = arith.mulf %m, %c : f32",
        "%x = arith.mulf %a, %f : f32",
        "%r = arith.addf %x, %n : f32",
    )


def gated(factor: str) -> str:
    """Return a program that blocks all standard-normal numbers."""
    return elementwise(
        "f32",
        "f32",
        "%c = arith.constant 100.5 : f32",
        "%z = arith.constant 0.0 : f32",
        f"%f = arith.constant {factor} : f32",
        "%d = arith.subf %a, %c : f32",
        "%p = arith.maximumf %d, %z : f32",
        "%r = arith.mulf %p, %f : f32",
    )


WRONG = {
    "what a relu holds back": (gated("1.0"), gated("7.0")),
    "1e-6 x": (scaled("1.0e-6"), scaled("-7.0e-6")),
    "2e-5 x": (scaled("2.0e-5"), scaled("0.0")),
    "2e-5 x, a little off": (scaled("2.0e-5"), scaled("2.0002e-5")),
    "masked logits": (masked("1.0"), masked("-0.5")),
    "masked by the lowest": (masked("1.0", "0xFF7FFFFF"), masked("-0.5", "0xFF7FFFFF")),
    "logits plus a mask": (added_mask("1.0"), added_mask("-0.5")),
    "integers": (integers(0), integers(9)),
    "comparisons": (
        elementwise("f32 f32", "i1", "%r = arith.cmpf olt, %a, %b : f32"),
        elementwise("f32 f32", "i1", "%r = arith.cmpf ogt, %a, %b : f32"),
    ),
}
"""Programs, and wrong ones that earlier checks accepted."""


@pytest.fixture(autouse=True)
def nothing_compiled():
    """Clear the runner's cache, which cannot distinguish planted candidates from compiled ones."""
    runner._compiled.cache_clear()
    yield
    runner._compiled.cache_clear()


@pytest.fixture
def plant(monkeypatch):
    """Let a schedule of the given name compile to another program."""

    def planted(wrong: str):
        def scheduled(text: str, script: str) -> Any:
            return compiler.parse(wrong if script == PLANTED else text)

        monkeypatch.setattr(runner, "scheduled", scheduled)
        runner._compiled.cache_clear()

    return planted


@pytest.mark.parametrize("name", WRONG)
def test_wrong_programs_are_called_wrong_and_right_ones_right(name, plant):
    right, wrong = WRONG[name]
    plant(wrong)
    found = runner.measure(right, PLANTED, host_target(), QUICK)
    assert found.outcome is Outcome.WRONG_RESULT and "instead of" in found.detail
    said = runner.validate(right, PLANTED, host_target(), 2, 1)
    assert not said.ok and "instead of" in said.detail
    plant(right)
    assert runner.measure(right, PLANTED, host_target(), QUICK).outcome is Outcome.OK
    said = runner.validate(right, PLANTED, host_target(), 2, 1)
    assert said.checked and said.inputs in (2, 3), said


def _greatest(maximum: str) -> str:
    """Return a program for the greatest of each row, by a given operation."""
    return describe(f"""func.func @main(%x: tensor<12x40xf32>) -> tensor<12xf32> {{
      %low = arith.constant 0xFF800000 : f32
      %e = tensor.empty() : tensor<12xf32>
      %f = linalg.fill ins(%low : f32) outs(%e : tensor<12xf32>) -> tensor<12xf32>
      %0 = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
          iterator_types = ["parallel", "reduction"]}}
          ins(%x : tensor<12x40xf32>) outs(%f : tensor<12xf32>) {{
        ^bb0(%a: f32, %most: f32):
          %r = {maximum} %a, %most : f32
          linalg.yield %r : f32
      }} -> tensor<12xf32>
      return %0 : tensor<12xf32>
    }}""")[0]


ZERO = "%z = arith.constant 0.0 : f32"
RELU = elementwise("f32", "f32", ZERO, "%r = arith.maximumf %a, %z : f32")
PRODUCT = elementwise("f32 f32", "f32", "%r = arith.mulf %a, %b : f32")

WRONG_ON_SPECIAL = {
    "relu makes 0 of NaN": (RELU, elementwise("f32", "f32", ZERO, "%r = arith.maxnumf %a, %z : f32")),
    "relu lets -0.0 through": (
        RELU,
        elementwise(
            "f32",
            "f32",
            ZERO,
            "%c = arith.cmpf ugt, %a, %z : f32",
            "%m = arith.mulf %a, %z : f32",
            "%r = arith.select %c, %a, %m : f32",
        ),
    ),
    "a maximum passes over NaN": (_greatest("arith.maximumf"), _greatest("arith.maxnumf")),
    "products with 0 are 0": (
        PRODUCT,
        elementwise(
            "f32 f32",
            "f32",
            ZERO,
            "%p = arith.mulf %a, %b : f32",
            "%f = arith.cmpf oeq, %a, %z : f32",
            "%s = arith.cmpf oeq, %b, %z : f32",
            "%c = arith.ori %f, %s : i1",
            "%r = arith.select %c, %z, %p : f32",
        ),
    ),
    "what is taken from itself is 0": (
        elementwise("f32", "f32", "%r = arith.subf %a, %a : f32"),
        elementwise("f32", "f32", "%r = arith.constant 0.0 : f32"),
    ),
    "a comparison with NaN holds": (
        elementwise("f32 f32", "i1", "%r = arith.cmpf olt, %a, %b : f32"),
        elementwise("f32 f32", "i1", "%r = arith.cmpf ult, %a, %b : f32"),
    ),
}
"""Programs, and wrong ones that differ on zeros, infinities or NaN only."""


@pytest.mark.parametrize("name", WRONG_ON_SPECIAL)
def test_errors_on_special_numbers_alone_are_found(name, plant):
    right, wrong = WRONG_ON_SPECIAL[name]
    plant(wrong)
    said = runner.validate(right, PLANTED, host_target(), 1, 1)
    assert not said.ok and "instead of" in said.detail
    plant(right)
    assert runner.validate(right, PLANTED, host_target(), 1, 1).ok


MATMUL = describe(Operator("matmul", (12, 10, 16)).text())[0]
TRUTHS = WRONG["comparisons"][0]
SOFTMAX = describe(Operator("softmax", (12, 10)).text())[0]


class Planted(Executable):
    """A candidate that does something else in addition to, or instead of, its work."""

    instead = False
    act: Any = None

    def run(self, repetitions: int) -> None:
        if not self.instead:
            super().run(repetitions)
        type(self).act(self._arrays)


def candidate(monkeypatch, act, instead=False):
    made = type("Candidate", (Planted,), {"act": staticmethod(act), "instead": instead})
    monkeypatch.setattr(runner, "Executable", made)
    runner._compiled.cache_clear()


def beyond(place: int, arrays: Any) -> None:
    # The same in each run: otherwise the effect would depend on the number of runs.
    array = arrays[place]
    ctypes.memset(array.ctypes.data + array.nbytes, 0, 8)


def before(arrays: Any) -> None:
    ctypes.memset(arrays[-1].ctypes.data - 8, 0, 8)


def changed_argument(arrays: Any) -> None:
    arrays[0][0, 0] += 1


def one_unwritten(arrays: Any) -> None:
    arrays[-1][...] = 1.0
    checking.prepared(MATMUL)[1].blank()
    arrays[-1][:-1] = 1.0


def added_up(total: list[int], arrays: Any) -> None:
    total[0] += 1
    arrays[-1][...] *= total[0]


def nothing(arrays: Any) -> None:
    pass


FAULTS = {
    "beyond its result": (MATMUL, partial(beyond, -1), False, "it wrote beyond result 0"),
    "beyond an argument": (MATMUL, partial(beyond, 0), False, "it wrote beyond argument 0"),
    "before its result": (MATMUL, before, False, "it wrote beyond result 0"),
    "changed argument": (MATMUL, changed_argument, False, "it changed argument 0"),
    "not written": (MATMUL, nothing, True, "it left numbers of result 0 unwritten"),
    "not written, by runs of coarser rounding": (SOFTMAX, nothing, True, "it left numbers of result 0"),
    "not all written": (MATMUL, one_unwritten, True, "it left numbers of result 0 unwritten"),
    "truth values not written": (TRUTHS, nothing, True, "120 of 120 numbers differ"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_memory_faults_are_found_and_do_not_affect_the_next_candidate(name, monkeypatch):
    text, act, instead, said = FAULTS[name]
    candidate(monkeypatch, act, instead)
    found = runner.measure(text, "", host_target(), QUICK)
    assert found.outcome is Outcome.WRONG_RESULT and said in found.detail
    validation = runner.validate(text, "", host_target(), 1, 3)
    assert not validation.ok and ("unwritten" in said or said in validation.detail)
    monkeypatch.undo()
    runner._compiled.cache_clear()
    assert (
        runner.measure(text, "", host_target(), QUICK).ok
        and runner.validate(text, "", host_target(), 1, 3).checked
    )


def test_no_wrong_candidate_is_compared_with_a_baseline(monkeypatch):
    candidate(monkeypatch, changed_argument)
    with pytest.raises(IrgymError, match="it changed argument 0"):
        runner.compare("linalg://matmul/12x10x16", MATMUL, "", host_target(), "numpy", 1)
    monkeypatch.undo()
    runner._compiled.cache_clear()
    assert runner.compare("linalg://matmul/12x10x16", MATMUL, "", host_target(), "numpy", 1).ratios


def test_a_result_that_adds_up_from_run_to_run_shows(monkeypatch):
    candidate(monkeypatch, partial(added_up, [0]))
    found = runner.measure(MATMUL, "", host_target(), Timing())
    assert found.outcome is Outcome.WRONG_RESULT and "120 of 120 numbers differ" in found.detail


def test_candidates_share_memory_which_is_replaced_after_a_fault(monkeypatch):
    checking.prepare_again()
    _, buffers = checking.prepared(MATMUL)
    assert runner.measure(MATMUL, "", host_target(), QUICK).ok
    assert checking.prepared(MATMUL)[1] is buffers
    candidate(monkeypatch, partial(beyond, -1))
    assert not runner.measure(MATMUL, "", host_target(), QUICK).ok
    assert checking.prepared(MATMUL)[1] is not buffers


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        (MATMUL, [True, True, False, False]),  # integers, then random numbers, then special ones
        (SOFTMAX, [False] * 4),
        (integers(0), [True] * 3),
    ],
)
def test_validation_has_both_kinds_of_inputs(text, kinds):
    problems = checking.problems(text, 3, 7)
    assert [problem.expected[0].allowance is None for problem in problems] == kinds
    assert len({problem.inputs[0].tobytes() for problem in problems}) == len(problems)
    # Blind spots on special numbers do not count for the other problems.
    assert not any(problem.blind for problem in problems[:3])
    single = checking.problems(text, 1, 7)
    assert {problem.expected[0].allowance is None for problem in single} == set(kinds)


def test_whole_numbers_make_sums_exact_and_one_product_less_shows():
    [checked, *_] = checking.problems(MATMUL, 2, 0)
    left, right = (array.astype(np.int64) for array in checked.inputs)
    assert np.abs(left).min() >= 1 and np.abs(left).max() > 100
    assert np.array_equal(left @ right, checked.expected[0].values)
    result = checked.expected[0].values.copy()
    result[3, 4] -= left[3, 5] * right[5, 4]
    assert not checked.judge([result]).ok


def test_whole_arguments_are_drawn_widely_and_indices_within_their_tensors():
    [checked, *_] = checking.problems(integers(0), 1, 0)
    assert len(np.unique(checked.inputs[0])) > 90 and checked.inputs[0].min() < 0
    text = describe("""
    func.func @main(%table: tensor<9x4xf32>, %rows: tensor<24xi64>) -> tensor<24x4xf32> {
      %e = tensor.empty() : tensor<24x4xf32>
      %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>],
          iterator_types = ["parallel", "parallel"]} ins(%rows : tensor<24xi64>)
          outs(%e : tensor<24x4xf32>) {
        ^bb0(%row: i64, %o: f32):
          %i = arith.index_cast %row : i64 to index
          %j = linalg.index 1 : index
          %v = tensor.extract %table[%i, %j] : tensor<9x4xf32>
          linalg.yield %v : f32
      } -> tensor<24x4xf32>
      return %0 : tensor<24x4xf32>
    }""")[0]
    for checked in checking.problems(text, 2, 0):
        rows = checked.inputs[1]
        assert rows.min() == 0 and rows.max() == 8
        assert np.array_equal(checked.expected[0].values, checked.inputs[0][rows], equal_nan=True)


def test_uncheckable_results_are_reported():
    # A sum with 1e9 loses so much of 50 that 0 passes, at any scale.
    text = elementwise(
        "f32",
        "f32",
        "%c = arith.constant 1.0e9 : f32",
        "%k = arith.constant 50.0 : f32",
        "%z = arith.constant 0.0 : f32",
        "%p = arith.cmpf ogt, %a, %z : f32",
        "%x = arith.select %p, %k, %z : f32",
        "%s = arith.addf %x, %c : f32",
        "%r = arith.subf %s, %c : f32",
    )
    said = runner.validate(text, "", host_target(), 1, 0)
    assert said.ok and not said.checked and said.blind == "zeros would pass for the result"


def test_no_candidate_pays_for_what_it_is_checked_on():
    checking.prepare_again()
    checking._original.cache_clear()
    checking._exact.cache_clear()
    told: list[Any] = []
    before = SLOT.set(Slot((), False, told.append))
    try:
        assert runner.measure(MATMUL, "", host_target(), QUICK).ok
        assert told.count(None) >= 3, "the clock restarts to compile, to run, and for the candidate"
        told.clear()
        assert runner.measure(MATMUL, "", host_target(), QUICK).ok
        assert told == [None]
    finally:
        SLOT.reset(before)
