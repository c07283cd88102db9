"""A planted fault: a small right model, and a wrong one that differs in a single respect."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper, parser

Array = NDArray[Any]

Constant = tuple[int, ...] | list[int] | float | Array
"""A constant of a model: a shape to fill with random floats, integers, a float, or an array."""

OPSET = 21


@dataclass(frozen=True)
class Kind:
    """A kind of wrong model.

    Attributes:
        name: The fault.
        inputs: Inputs with their types, in ONNX's text form.
        right: Operators of the right model, in ONNX's text form.
        wrong: Operators of the wrong model.
        constants: Constants of both models, by name.
        results: Types and names of the results.
        ranges: Least and greatest value of integer inputs whose range the model does not determine.
        opset: Version of ONNX's operator set.
    """

    name: str
    inputs: str
    right: str
    wrong: str
    constants: Mapping[str, Constant] = field(default_factory=dict[str, Constant])
    results: str = "float y"
    ranges: Mapping[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    opset: int = OPSET

    def models(self) -> tuple[onnx.ModelProto, onnx.ModelProto]:
        """Return the right model and the wrong one."""
        return self._model(self.right), self._model(self.wrong)

    def _model(self, body: str) -> onnx.ModelProto:
        model = parser.parse_model(
            f'<ir_version: 10, opset_import: ["" : {self.opset}, "com.microsoft" : 1]> '
            f"planted ({self.inputs}) => ({self.results}) {{ {body} }}"
        )
        used = {value for node in model.graph.node for value in node.input} | set(body.split())
        for place, (name, constant) in enumerate(self.constants.items()):
            if name in used:
                model.graph.initializer.append(numpy_helper.from_array(array_of(constant, place), name))
        for value in model.graph.output:
            if not value.type.tensor_type.shape.dim:
                value.type.tensor_type.ClearField("shape")
        for name, (low, high) in self.ranges.items():
            model.metadata_props.add(key=f"irgym.range.{name}", value=f"{low},{high}")
        return model


def array_of(constant: Constant, place: int) -> Array:
    """Return the array of a constant; random arrays depend on the place among the constants."""
    if isinstance(constant, tuple):
        return np.random.default_rng(place + 1).standard_normal(constant).astype(np.float32) * 0.5
    if isinstance(constant, list):
        return np.array(constant, np.int64)
    return np.asarray(constant, np.float32) if isinstance(constant, float) else constant
