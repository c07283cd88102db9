"""Checks start from the user's file and include special numbers; exports are read back whole."""

import importlib
from pathlib import Path

import numpy as np
import pytest

from irgym.base.errors import IrgymError, ProgramError
from irgym.core.cost import Call, Validation
from irgym.core.schedule import Schedule, replay
from irgym.envs.hlo.checking.special import with_special_numbers
from irgym.envs.hlo.compiling.engine import load_engine
from irgym.envs.hlo.compiling.execution import compare
from irgym.envs.hlo.environment import HLO
from irgym.envs.hlo.programs.lowering import convert, portable
from irgym.judging.validator import Validator

pytestmark = pytest.mark.usefixtures("engine")

CASE = (Path(__file__).parents[3] / "cases" / "hlo" / "dedup_compare_types.txt").read_text()

SUM = """HloModule sum
ENTRY main {
  x = f32[4]{0} parameter(0)
  zero = f32[] constant(0)
  zeros = f32[4]{0} broadcast(zero), dimensions={}
  ROOT y = f32[4]{0} add(x, zeros)
}
"""

ABROAD = """HloModule abroad
ENTRY main {
  x = f32[4]{0} parameter(0)
  zero = f32[] constant(0)
  zeros = f32[4]{0} broadcast(zero), dimensions={}
  y = f32[4]{0} add(x, zeros)
  ROOT z = f32[4]{0} custom-call(y), custom_call_target="__cublas$gemm"
}
"""

DYNAMIC = """HloModule dynamic
ENTRY main {
  x = s32[4,2]{1,0} parameter(0)
  n = s32[] parameter(1)
  d = s32[<=4,2]{1,0} set-dimension-size(x, n), dimensions={0}
  ROOT size = s32[] get-dimension-size(d), dimensions={0}
}
"""

FUNCTION = """module @m {
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %zero = stablehlo.constant dense<0.0> : tensor<4xf32>
    %y = stablehlo.add %x, %zero : tensor<4xf32>
    return %y : tensor<4xf32>
  }
}
"""


def proto(text: str) -> bytes:
    return load_engine().from_text(text).proto()


def test_the_two_comparators_stay_two():
    engine = load_engine()
    for names in (("computation-deduplicator",), ("cse",), ("computation-deduplicator", "cse", "dce")):
        module = engine.from_text(CASE)
        for name in names:
            module.run(engine.number(name))
        assert module.text().count("TOTALORDER") == 1
        assert module.text().count(" sort(") == 2


def test_comparators_that_differ_on_nan_and_zeros_are_told_apart():
    original = proto(CASE)
    assert compare(original, original, 1).checked
    for wrong in (CASE.replace("=lt_total", "=lt_float"), CASE.replace("=lt_float", "=lt_total")):
        found = compare(original, proto(wrong), 1)
        assert not found.ok
        assert "special numbers" in found.detail


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("maximum(x, y)", "select(g, x, y)"),
        ("abs(x)", "select(g, x, n)"),
    ],
)
def test_differences_on_special_numbers_alone_are_found(right: str, wrong: str):
    lines = """HloModule m
ENTRY main {
  x = f32[32]{0} parameter(0)
  y = f32[32]{0} parameter(1)
  g = pred[32]{0} compare(x, y), direction=GT
  n = f32[32]{0} negate(x)
  ROOT z = f32[32]{0} RESULT
}
"""
    original = proto(lines.replace("RESULT", right))
    assert compare(original, original, 1).checked
    assert not compare(original, proto(lines.replace("RESULT", wrong)), 1).ok


def test_special_numbers_are_drawn_for_every_type():
    rng = np.random.default_rng(0)
    given = [
        rng.standard_normal(400).astype(np.float32),
        rng.integers(0, 9, 400).astype(np.int16),
        rng.random(3) < 0.5,
    ]
    floats, integers, truths = with_special_numbers(given, 0, finite=False, whole=True)
    assert np.isnan(floats).any() and np.isposinf(floats).any() and np.isneginf(floats).any()
    assert {True, False} <= set(np.signbit(floats[floats == 0.0]))
    tiny = np.finfo(np.float32).tiny
    assert ((np.abs(floats) < tiny) & (floats != 0)).any()
    ordinary = floats[np.isfinite(floats) & (np.abs(floats) > tiny) & (np.abs(floats) != 1)]
    assert len(np.unique(ordinary)) < len(ordinary), "ties"
    assert {-32768, 32767, -1, 0} <= set(integers.tolist())
    assert truths is given[2]
    floats, integers, _ = with_special_numbers(given, 0, finite=True, whole=False)
    assert np.isfinite(floats).all() and integers is given[1]


class InProcess:
    """A bench that runs calls in this process."""

    def call(self, call: Call) -> Validation:
        module, _, name = call.function.partition(":")
        return getattr(importlib.import_module(module), name)(*call.arguments)


def checked(file: Path, *passes: str) -> Validation:
    task = HLO.task(f"hlo:{file}")
    state = replay(task, Schedule.parse(" ".join(passes), task.space)) if passes else task.initial()
    found = Validator(InProcess(), 1, 0)(task, state)
    assert found is not None
    return found


def test_the_program_as_written_is_run(tmp_path: Path):
    (tmp_path / "sum.hlo").write_text(SUM)
    found = checked(tmp_path / "sum.hlo")
    assert found.checked and found.inputs == 1
    assert checked(tmp_path / "sum.hlo", "algsimp").checked


@pytest.mark.parametrize("passes", [(), ("algsimp",)])
@pytest.mark.parametrize(
    ("text", "why"),
    [
        (ABROAD, "No registered implementation"),
        (SUM.replace("HloModule sum", "HloModule sum, num_partitions=2"), "made for 2 devices"),
        (SUM.replace("HloModule sum", "HloModule sum, replica_count=4"), "made for 4 devices"),
    ],
)
def test_modules_that_do_not_run_are_not_reported_as_checked(
    tmp_path: Path, text: str, why: str, passes: tuple[str, ...]
):
    (tmp_path / "module.hlo").write_text(text)
    found = checked(tmp_path / "module.hlo", *passes)
    assert found.ok and not found.checked and not found.inputs
    assert why in found.blind


def test_the_number_of_devices_is_kept_or_the_export_refused(tmp_path: Path):
    text = FUNCTION.replace("module @m", "module @m attributes {mhlo.num_partitions = 2 : i32}")
    (tmp_path / "text.mlir").write_text(text)
    (tmp_path / "bytes.mlirbc").write_bytes(portable(text))
    for name in ("text.mlir", "bytes.mlirbc"):
        task = HLO.task(f"hlo:{tmp_path / name}")
        [file] = task.export(task.initial(), tmp_path / "out.hlo")
        assert "num_partitions=2" in file.read_text()
        for suffix in (".pb", ".mlir"):
            with pytest.raises(ProgramError, match="num_partitions=2"):
                task.export(task.initial(), tmp_path / f"out{suffix}")
            assert not (tmp_path / f"out{suffix}").exists()


def test_dynamic_shapes_inside_a_module_are_refused_on_opening(tmp_path: Path):
    (tmp_path / "dynamic.hlo").write_text(DYNAMIC)
    with pytest.raises(ProgramError, match=r"dynamic shapes \(.* of shape s32\[<=4,2\]"):
        convert(str(tmp_path / "dynamic.hlo"))


def test_a_file_that_computes_something_else_is_noticed(tmp_path: Path):
    (tmp_path / "sum.mlir").write_text(FUNCTION)
    task = HLO.task(f"hlo:{tmp_path / 'sum.mlir'}")
    assert Validator(InProcess(), 1, 0)(task, task.initial()).checked
    (tmp_path / "sum.mlir").write_text(FUNCTION.replace("stablehlo.add", "stablehlo.multiply"))
    found = Validator(InProcess(), 1, 1)(task, task.initial())
    assert not found.checked
    assert "computes something else" in found.blind


def test_hlo_runs_as_it_is():
    x = np.array([3, np.nan, -0.0, 0.0, 1, -1, 2, 5, 4, 7, 6, 9, 8, 11, 10, 12], np.float32)
    results = np.frombuffer(load_engine().from_text(CASE).execute(x.tobytes() * 2), np.float32)
    assert len(results) == 32
    np.testing.assert_array_equal(results[16:], np.sort(x))
    with pytest.raises(IrgymError, match="No registered implementation"):
        load_engine().from_text(ABROAD).execute(bytes(16))


@pytest.mark.parametrize("suffix", [".hlo", ".pb", ".mlir", ".jax"])
def test_exports_hold_negative_zeros(tmp_path: Path, suffix: str):
    (tmp_path / "zeros.hlo").write_text(
        SUM.replace("constant(0)", "constant(-0.0)").replace("add", "multiply")
    )
    task = HLO.task(f"hlo:{tmp_path / 'zeros.hlo'}")
    [file] = task.export(task.initial(), tmp_path / f"out{suffix}")
    assert file.stat().st_size


def test_exports_that_jax_cannot_read_are_not_written(tmp_path: Path):
    inner = "inner {\n  p = f32[4]{0} parameter(0)\n  ROOT n = f32[4]{0} negate(p)\n}\n"
    text = (
        f"HloModule asynchronous\n{inner}ENTRY main {{\n  x = f32[4]{{0}} parameter(0)\n"
        "  s = ((f32[4]{0}), f32[4]{0}, s32[]) call-start(x), to_apply=inner\n"
        "  ROOT d = f32[4]{0} call-done(s)\n}\n"
    )
    (tmp_path / "asynchronous.hlo").write_text(text)
    task = HLO.task(f"hlo:{tmp_path / 'asynchronous.hlo'}")
    for suffix in (".mlir", ".jax"):
        with pytest.raises(IrgymError, match=r"export \.hlo or \.pb"):
            task.export(task.initial(), tmp_path / f"out{suffix}")
        assert not (tmp_path / f"out{suffix}").exists()
