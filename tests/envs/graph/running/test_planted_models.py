"""Wrong models are refused, correct ones are not, and a blind check reports itself."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from fuzz.graph.planted import ACCEPTED, CAUGHT, judge, judge_state, task_of
from fuzz.graph.planting.kinds import Kind
from fuzz.graph.planting.library import KINDS

from irgym.core.actions import Action
from irgym.envs.graph.actions import ENDINGS
from irgym.envs.graph.checking.checks import Kind as KindOfInputs
from irgym.envs.graph.checking.checks import checks_on
from irgym.envs.graph.environment import RUNNING
from irgym.envs.graph.running.artefacts import model_at
from irgym.envs.graph.running.sessions import Program
from irgym.measure.isolation.child import Child

SUBTLE = (
    "Round away from zero at ties",
    "sign of zero as 1",
    "Less for LessOrEqual",
    "Max as a choice (no number on the left)",
    "IsNaN for what is infinite too",
    "two factors merged into infinity",
    "signed bytes taken for unsigned ones",
    "bias of 1e-7 left out",
    "softmax without subtracting the maximum, after a product",
    "logarithm of softmax in place of LogSoftmax",
    "mask of -infinity in place of -1e9 (rows that are masked whole)",
    "mask of -1e4 in place of -infinity, on a row that is masked whole or scores of thousands",
    "mask added where it was put in place",
    "LayerNormalization with a smaller epsilon",
    "clipping at 20 left out",
    "ArgMax that takes the last of equals",
    "Gather that clips negative indices",
    "OneHot of a negative index as nothing",
    "LSTM whose cells are clipped",
)
"""Errors that ordinary inputs do not reveal."""


@pytest.fixture(scope="module")
def child() -> Iterator[Child]:
    with Child(RUNNING) as found:
        yield found


def named(name: str) -> Kind:
    return next(kind for kind in KINDS if kind.name == name)


@pytest.mark.parametrize("name", SUBTLE)
def test_a_fault_that_ordinary_inputs_do_not_show_is_found(name: str, child: Child, tmp_path: Path):
    verdict = judge(named(name), tmp_path, child, (0, 1))
    assert verdict.outcome == CAUGHT, verdict


def test_planted_faults_are_found(child: Child, tmp_path: Path):
    missed: list[str] = []
    for place, kind in enumerate(kind for kind in KINDS[::8] if kind.name not in SUBTLE):
        folder = tmp_path / str(place)
        folder.mkdir()
        verdict = judge(kind, folder, child, (0, 1))
        missed += [kind.name] if verdict.outcome != CAUGHT else []
    assert not missed


@pytest.mark.parametrize("name", ["LSTM whose cells are clipped", "Gelu by tanh", "causal mask one later"])
def test_models_that_onnx_runtime_optimised_are_accepted(name: str, child: Child, tmp_path: Path):
    right, _ = named(name).models()
    task = task_of(right, tmp_path / "right.onnx")
    [ending] = [kind for kind, level in ENDINGS.items() if level == "all"]
    optimised = task.step(task.initial(), Action(ending))
    assert judge_state(task, optimised, child, (0, 1)).outcome == ACCEPTED


def checks_of(body: str, constants: dict[str, float], folder: Path):
    model, _ = Kind("", "float[4,8] x", body, body, constants).models()
    task = task_of(model, folder / "model.onnx")
    checks = checks_on(task.path, 1, 0)
    return checks.judge(Program(task.graph, model_at(task.path).weights, 1).run), checks


def test_a_check_is_blind_if_all_results_are_the_same_number(tmp_path: Path):
    found, _ = checks_of("s = Mul(x, big) y = Mul(s, big)", {"big": 1e38}, tmp_path)
    assert found.ok and not found.checked
    assert "one and the same number, or no finite one" in found.blind


def test_inputs_on_which_the_model_overflows_are_left_out(tmp_path: Path):
    found, checks = checks_of(
        "s = Mul(x, big) e = Exp(s) y = ReduceSum<keepdims=0>(e)", {"big": 3.0}, tmp_path
    )
    assert found.checked
    _, _, left_out = found.tolerance.partition("; left out: ")
    assert "inputs of a hundred times the usual size" in left_out
    assert left_out.endswith("on which the original model has no finite result")
    assert found.inputs == sum(check.problem is not None for check in checks.made) < len(checks.made)


def test_a_difference_says_on_what_inputs_it_was_found(tmp_path: Path):
    right, wrong = named("softmax without subtracting the maximum").models()
    task, other = (task_of(model, tmp_path / f"{name}.onnx") for name, model in (("r", right), ("w", wrong)))
    found = checks_on(task.path, 1, 0).judge(Program(other.graph, model_at(other.path).weights, 1).run)
    assert not found.ok and found.detail.startswith("on inputs of ") and "nan" in found.detail
    assert "lack of time" not in found.tolerance


def test_inputs_for_which_there_is_no_time_are_counted(tmp_path: Path):
    right, _ = named("softmax without subtracting the maximum").models()
    task = task_of(right, tmp_path / "right.onnx")
    checks = checks_on(task.path, 2, 0)
    program = Program(task.graph, model_at(task.path).weights, 1)
    hurried = checks.judge(program.run, 0.0)
    assert hurried.ok and hurried.inputs == 1 and "further inputs were left out for lack" in hurried.tolerance
    whole = checks.judge(program.run)
    assert whole.inputs > 2 and "lack of time" not in whole.tolerance


def test_inputs_of_whole_numbers_reach_the_ends_of_their_range(tmp_path: Path):
    right, _ = named("Gather that clips negative indices").models()
    onnx.save(right, str(tmp_path / "right.onnx"))
    task = task_of(right, tmp_path / "gather.onnx")
    checks = checks_on(task.path, 1, 0)
    checks.judge(Program(task.graph, model_at(task.path).weights, 1).run)
    extreme = [check for check in checks.made if check.kind is KindOfInputs.EXTREME]
    drawn = np.concatenate([check.feeds["i"].reshape(-1) for check in extreme])
    assert {-9, -1, 8} <= set(drawn.tolist()) <= set(range(-9, 9))
