from pathlib import Path

import numpy as np
import pytest

from irgym.base.errors import IrgymError
from irgym.envs.graph.ir.types import TensorType
from irgym.envs.graph.reference.operators import OPERATORS, evaluate, types_of


def test_unknown_operators_are_named():
    for ask in (evaluate, types_of):
        with pytest.raises(IrgymError, match=r"com\.example\.Magic"):
            ask("com.example.Magic", [], {})


def test_every_operator_is_tested():
    texts = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))
    for operator in OPERATORS:
        name = operator.removeprefix("com.microsoft.nchwc.").removeprefix("Reduce")
        assert f'"{name}"' in texts or f"}}{name}" in texts, operator


def test_types_need_the_values_they_depend_on():
    x, shape = TensorType("float32", (2, 3)), TensorType("int64", (1,))
    for operator in ("Reshape", "Expand", "ReduceSum", "Unsqueeze", "Split"):
        with pytest.raises(IrgymError, match=f"{operator} depends on its input 1"):
            types_of(operator, [x, shape], {}, [None, None])
    assert types_of("Reshape", [x, shape], {}, [None, np.array([-1])]) == [TensorType("float32", (6,))]


def test_types_of_large_arrays_take_no_memory():
    x = TensorType("float32", (1 << 20, 1 << 20))
    target = np.array([1 << 10, -1])
    assert types_of("Reshape", [x, TensorType("int64", (2,))], {}, [None, target])[0].shape == (
        1 << 10,
        1 << 30,
    )
    assert types_of("Transpose", [x], {})[0].shape == x.shape
    assert types_of("Split", [x], {"num_outputs": 2, "axis": 1}, outputs=2)[1].shape == (1 << 20, 1 << 19)


def test_missing_attributes_and_outputs_are_named():
    x = np.zeros((1, 1, 4, 4))
    with pytest.raises(IrgymError, match="MaxPool needs the attribute 'kernel_shape'"):
        evaluate("MaxPool", [x], {})
    with pytest.raises(IrgymError, match="Relu is not known here with 2 outputs"):
        evaluate("Relu", [x], {}, 2)
    with pytest.raises(IrgymError, match="training_mode"):
        evaluate("BatchNormalization", [x, *np.ones((4, 1))], {"training_mode": 1})


@pytest.mark.parametrize(
    "operator", ["Relu", "Add", "Gelu", "ReduceSum", "Softmax", "MatMul", "LayerNormalization"]
)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_precision_is_kept(operator, dtype):
    x = np.linspace(0, 1, 4, dtype=dtype)
    inputs = [x, x] if operator in ("Add", "MatMul", "LayerNormalization") else [x]
    assert evaluate(operator, inputs, {})[0].dtype == dtype
    if operator not in ("MatMul", "LayerNormalization", "Softmax"):
        assert evaluate(operator, [array[0] for array in map(np.atleast_2d, inputs)], {})[0].dtype == dtype


@pytest.mark.parametrize(
    ("operator", "shapes", "attributes"),
    [
        ("MatMul", [(2, 3), (2, 3)], {}),
        ("Gemm", [(2, 3), (2, 3)], {}),
        ("Conv", [(1, 3, 4, 4), (2, 2, 1, 1)], {}),
        ("Conv", [(1, 3, 4, 4), (2, 3, 5, 5)], {}),
        ("Concat", [(2, 3), (3, 3)], {"axis": 1}),
    ],
)
def test_types_refuse_shapes_that_do_not_fit(operator, shapes, attributes):
    with pytest.raises(IrgymError):
        types_of(operator, [TensorType("float32", shape) for shape in shapes], attributes)


@pytest.mark.parametrize("axes", [[0, 0], [4], [-5], [1, -3]])
def test_axes_that_cannot_be_added_are_refused(axes):
    known = [None, np.array(axes)]
    with pytest.raises(IrgymError, match="Unsqueeze cannot add the axes"):
        types_of("Unsqueeze", [TensorType("float32", (2, 3)), TensorType("int64", (len(axes),))], {}, known)
