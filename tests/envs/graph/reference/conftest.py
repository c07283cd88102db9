"""ONNX Runtime as the oracle for the reference operators."""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper
from onnxruntime.capi.onnxruntime_pybind11_state import InvalidGraph
from onnxruntime.capi.onnxruntime_pybind11_state import NotImplemented as NotSupported

from irgym.envs.graph.ir.types import TensorType
from irgym.envs.graph.reference.operators import evaluate, types_of

INSTANCES = 20
"""Least number of random instances of an operator in a test."""


def run(
    operator: str, inputs: Sequence[Any], attributes: dict[str, Any], outputs: int = 1, opset: int = 22
) -> list[Any]:
    """Return the results of ONNX Runtime without optimisation."""
    domain, _, name = operator.rpartition(".")
    while inputs and inputs[-1] is None:
        inputs = inputs[:-1]
    names = ["" if array is None else f"x{index}" for index, array in enumerate(inputs)]
    given = {name: array for name, array in zip(names, inputs, strict=True) if array is not None}
    results = [f"y{index}" for index in range(outputs)]
    stored = {
        key: onnx.numpy_helper.from_array(value) if isinstance(value, np.ndarray) else value
        for key, value in attributes.items()
    }
    graph = helper.make_graph(
        [helper.make_node(name, names, results, domain=domain, **stored)],
        "one",
        [
            helper.make_tensor_value_info(key, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
            for key, array in given.items()
        ],
        [onnx.ValueInfoProto(name=key) for key in results],
    )
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    imports.append(helper.make_opsetid("com.microsoft.nchwc", 1))
    model = helper.make_model(graph, opset_imports=imports, ir_version=10)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return session.run(results, given)


@cache
def block_of_onnx_runtime() -> int:
    """Return the number of channels to which ONNX Runtime pads 4 of them."""
    (result,) = run("com.microsoft.nchwc.ReorderInput", [np.zeros((1, 4, 1, 1), np.float32)], {})
    return result.shape[1]


class Oracle:
    """Compares operators with ONNX Runtime.

    Attributes:
        instances: How many were compared, by operator.
        doubles: How many of them in float64, too.
        moved: By operator and number of an input, how many results in float64 changed when that input did, by
            less than float32 can hold.
    """

    def __init__(self) -> None:
        self.instances: Counter[str] = Counter()
        self.doubles: Counter[str] = Counter()
        self.moved: Counter[tuple[str, int]] = Counter()

    @property
    def block(self) -> int:
        """Channels of a block on this processor; without blocks, the test is skipped."""
        if (block := block_of_onnx_runtime()) < 8:
            pytest.skip("ONNX Runtime has no blocks of channels on this processor")
        return block

    def agrees(
        self,
        operator: str,
        inputs: Sequence[Any],
        attributes: dict[str, Any] | None = None,
        outputs: int = 1,
        *,
        compared: Sequence[int] | None = None,
        rtol: float = 1e-5,
        atol: float = 1e-5,
        opset: int = 22,
        doubles: bool = True,
        settings: Sequence[int] = (),
    ) -> None:
        """Compare values in float32 and, where ONNX Runtime has it, float64; and types.

        Args:
            operator: Its name.
            inputs: Arrays; None where left out.
            attributes: Numbers are rounded to float32, as ONNX stores them.
            outputs: Number of outputs.
            compared: Which of them ONNX Runtime computes; all by default.
            rtol: Relative tolerance in float32.
            atol: Absolute tolerance in float32.
            opset: ONNX's operator set.
            doubles: Whether to compare float64, to 1e-9.
            settings: Inputs of numbers that are in float32 always, and that the types depend on.
        """
        attributes = {name: _stored(value) for name, value in (attributes or {}).items()}
        chosen = range(outputs) if compared is None else compared
        self.instances[operator] += 1
        expected = run(operator, inputs, attributes, outputs, opset)
        actual = self._evaluated(operator, inputs, attributes, outputs, settings)
        for index in chosen:
            _same(expected[index], actual[index], rtol, atol, f"{operator} {attributes}")
        if not any(array is not None and array.dtype == np.float32 for array in inputs):
            return
        wide = [array if index in settings else _widened(array) for index, array in enumerate(inputs)]
        actual = self._evaluated(operator, wide, attributes, outputs, settings)
        for result, narrow in zip(actual, expected, strict=True):
            if narrow.dtype == np.float32 and not operator.startswith(("Cast", "Constant")):
                assert result.dtype == np.float64
        self._move(operator, wide, attributes, actual)
        if not doubles:
            return
        try:
            expected = run(operator, wide, attributes, outputs, opset)
        except (NotSupported, InvalidGraph) as error:
            assert "NOT_IMPLEMENTED" in str(error) or "Type 'tensor(double)'" in str(error)
            return
        self.doubles[operator] += 1
        for index in chosen:
            _same(expected[index], actual[index], 1e-9, 1e-9, f"{operator} {attributes} in float64")

    def equals(
        self,
        operator: str,
        inputs: Sequence[Any],
        attributes: dict[str, Any] | None = None,
        outputs: int = 1,
        *,
        off: float = 0.0,
    ) -> None:
        """Compare values, which must be equal, and types.

        Args:
            operator: Its name.
            inputs: Arrays.
            attributes: Attributes.
            outputs: Number of outputs.
            off: Share of the results that may be the next integer, where float32 decides between two.
        """
        expected = run(operator, inputs, attributes or {}, outputs)
        actual = self._evaluated(operator, inputs, attributes or {}, outputs, range(len(inputs)))
        for wanted, got in zip(expected, actual, strict=True):
            assert (got.dtype, got.shape) == (np.asarray(wanted).dtype, np.asarray(wanted).shape), operator
            difference = np.abs(got.astype(np.float64) - wanted)
            assert difference.max(initial=0) <= (1 if off else 0), operator
            assert (difference > 0).mean() <= off, operator

    def _move(
        self, operator: str, inputs: Sequence[Any], attributes: dict[str, Any], results: Sequence[Any]
    ) -> None:
        """Count whether the results change with each input."""
        if not any(result.dtype == np.float64 for result in results):
            return
        for index, array in enumerate(inputs):
            if array is None or array.dtype != np.float64 or not array.size:
                continue
            factors = 1 + 1e-12 * np.linspace(1, 2, array.size).reshape(array.shape)
            close = [*inputs[:index], np.asarray(array * factors), *inputs[index + 1 :]]
            near = evaluate(operator, close, attributes, len(results), **self._blocked(operator))
            pairs = zip(results, near, strict=True)
            self.moved[operator, index] += any(
                not np.array_equal(a, b, equal_nan=True) for a, b in pairs if a.dtype == np.float64
            )

    def _blocked(self, operator: str) -> dict[str, int]:
        return {"block": self.block} if operator.startswith("com.microsoft.nchwc") else {}

    def _evaluated(
        self,
        operator: str,
        inputs: Sequence[Any],
        attributes: dict[str, Any],
        outputs: int,
        settings: Sequence[int],
    ) -> list[Any]:
        """Return the results, after comparing their types with the type rule."""
        blocked = self._blocked(operator)
        results = evaluate(operator, inputs, attributes, outputs, **blocked)
        types = [None if array is None else TensorType(array.dtype.name, array.shape) for array in inputs]
        constants = [
            array
            if index in settings or (array is not None and (array.dtype.kind != "f" or not array.ndim))
            else None
            for index, array in enumerate(inputs)
        ]
        expected = [TensorType(array.dtype.name, array.shape) for array in results]
        found = types_of(operator, types, attributes, constants, outputs, **blocked)
        assert found == expected, (operator, attributes)
        return results


def _stored(value: Any) -> Any:
    if isinstance(value, float):
        return float(np.float32(value))
    return tuple(map(_stored, value)) if isinstance(value, tuple | list) else value


def _widened(array: Any) -> Any:
    return array.astype(np.float64) if array is not None and array.dtype == np.float32 else array


def _same(expected: Any, actual: Any, rtol: float, atol: float, what: str) -> None:
    assert actual.dtype == expected.dtype, what
    np.testing.assert_allclose(actual, expected, rtol, atol, err_msg=what)
    assert actual.shape == expected.shape, what


FLAT = {"CastLike", "Ceil", "Floor", "Range", "Round", "Sign"}
"""Operators whose results need not change with small changes of their inputs."""


@pytest.fixture
def oracle() -> Iterator[Oracle]:
    """Yield the oracle, and check at the end that it saw enough instances."""
    oracle = Oracle()
    yield oracle
    for operator, count in oracle.instances.items():
        assert count >= INSTANCES, f"{operator}: {count} instances"
    for (operator, index), count in oracle.moved.items():
        assert count or operator in FLAT, f"{operator} loses the precision of its input {index}"


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    """Return a random generator seeded by the name of the test."""
    return np.random.default_rng(list(request.node.name.encode()))
