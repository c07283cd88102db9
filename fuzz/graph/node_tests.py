"""ONNX's node tests, rewritten at random, exported, and run against the expected values.

A test counts if ONNX Runtime, without optimisation, runs the original model and returns the expected values.
Of these, each is right (the export returns the expected values), refused in one sentence, or wrong. Integer
inputs get the range of the values in the test. Seeds go through all tests.
"""

import traceback
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx
from onnx.backend.test.case import node

from fuzz.fuzzer import Tally, part
from fuzz.graph.reading.opening import Refused, exported, ran

FAULTS = ("wrong", "traceback", "not run after rewrites")
"""Outcomes that are faults."""

ONE_OFF = "right but for whole numbers that are one off"
"""An outcome: rounding may go to the other side."""

STEPS = 6
"""Greatest number of rewrites of a model."""


EACH = 4
"""Modules of tests of a seed."""


@dataclass(frozen=True)
class Case:
    """A node test whose inputs and outputs are tensors.

    Attributes:
        name: Name of the test.
        model: Its model.
        feeds: Inputs by name, for each data set.
        expected: Expected results, for each data set.
        rtol: Relative tolerance.
        atol: Absolute tolerance.
    """

    name: str
    model: onnx.ModelProto
    feeds: Sequence[Mapping[str, Any]]
    expected: Sequence[Sequence[Any]]
    rtol: float
    atol: float

    def agrees(self, results: Sequence[Sequence[Any]], step: int = 0) -> bool:
        """Say whether results equal the expected ones, compared as in ONNX's runner.

        Args:
            results: Results for each data set.
            step: Accepted difference of integers: rounding may go to the other side.
        """
        return all(
            len(found) == len(wanted)
            and all(alike(*pair, self.rtol, self.atol, step) for pair in zip(found, wanted, strict=True))
            for found, wanted in zip(results, self.expected, strict=True)
        )


def alike(found: Any, wanted: Any, rtol: float, atol: float, step: int = 0) -> bool:
    """Say whether a result equals the expected one."""
    if isinstance(wanted, list):
        return (
            isinstance(found, list)
            and len(found) == len(wanted)
            and all(
                alike(result, other, rtol, atol, step) for result, other in zip(found, wanted, strict=True)
            )
        )
    if wanted is None or found is None:
        return found is wanted
    found, wanted = np.asarray(found), np.asarray(wanted)
    if found.shape != wanted.shape:
        return False
    if wanted.dtype.kind in "OUS":
        return bool((found == wanted).all())
    if wanted.dtype.kind == "V" or wanted.dtype.name.startswith(
        ("bfloat", "float8", "float4", "int4", "uint4")
    ):
        return np.asarray(found).astype(np.float32).tobytes() == wanted.astype(np.float32).tobytes()
    if step and wanted.dtype.kind in "iu":
        atol = step
    return bool(np.allclose(found, wanted, rtol, atol, equal_nan=True)) and found.dtype == wanted.dtype


@cache
def modules() -> Sequence[str]:
    """Return the names of the modules that define the node tests, most of them one operator's."""
    return [module.name for module in walk_packages(node.__path__, f"{node.__name__}.") if not module.ispkg]


@cache
def tests_of(module: str) -> Sequence[Any]:
    """Return the node tests of a module that have a model; their expected values are computed for that."""
    known = len(node._NodeTestCases)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # computing some expected values overflows
        import_module(module)
    return [test for test in node._NodeTestCases[known:] if test.model is not None]


def case_of(test: Any) -> Case:
    """Return a node test with its data."""
    names = [value.name for value in test.model.graph.input]
    feeds = [dict(zip(names, map(_plain, given), strict=False)) for given, _ in test.data_sets]
    expected = [list(map(_plain, wanted)) for _, wanted in test.data_sets]
    return Case(test.name, test.model, feeds, expected, test.rtol, test.atol)


def _plain(value: Any) -> Any:
    """Return a value of a data set in the form that ONNX Runtime takes."""
    if isinstance(value, onnx.TensorProto):
        return onnx.numpy_helper.to_array(value)
    if isinstance(value, onnx.SequenceProto):
        return onnx.numpy_helper.to_list(value)
    if isinstance(value, onnx.OptionalProto):
        return onnx.numpy_helper.to_optional(value)
    return value


def outcome(case: Case, seed: int, folder: Path) -> tuple[str, str]:
    """Return the outcome of a test, and the reason or the failure.

    Args:
        case: The test.
        seed: Seed of rewrites.
        folder: Folder for the models.
    """
    try:
        itself = ran(case.model.SerializeToString(), case.feeds)
    except Refused as error:
        return "not run by ONNX Runtime", str(error)
    if not case.agrees(itself):
        return "otherwise in ONNX Runtime", ""
    ranges = {
        name: (int(array.min()), int(array.max()) + 1)
        for name, array in case.feeds[0].items()
        if isinstance(array, np.ndarray) and array.dtype.kind in "iu" and array.size
    }
    try:
        made = exported(case.model, folder / "node.onnx", ranges, np.random.default_rng(seed), STEPS)
    except Refused as error:
        return "refused", str(error)
    except Exception:  # noqa: BLE001  # a bug, whatever it is, is reported
        return "traceback", f"{case.name}: {traceback.format_exc()}"
    try:
        results = ran(made.content, case.feeds)
    except Refused as error:
        return "not run after rewrites", f"{case.name}: {made.schedule}: {error}"
    if not case.agrees(results) and case.agrees(results, step=1):
        return ONE_OFF, f"{case.name}: {made.schedule}"
    if not case.agrees(results):
        return "wrong", f"{case.name}: {made.schedule}"
    return ("right" if made.steps else "right without rewrites"), ""


def run(seed: int) -> Tally:
    """Try some tests."""
    tally = Tally()
    chosen, turn = part(modules(), seed, EACH)
    with TemporaryDirectory() as folder:
        for test in (test for module in chosen for test in tests_of(module)):
            came, why = outcome(case_of(test), turn, Path(folder))
            tally.add(came, f"{came}: {why}" if came in FAULTS else "")
            if came == ONE_OFF:
                tally.remarks.append(f"{came}: {why}")
    return tally
