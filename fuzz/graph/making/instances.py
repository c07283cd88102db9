"""Instances of rules as models, for rules without a site in any network."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import helper
from safetensors.numpy import save

from fuzz.graph.making.doubles import DOUBLE, SINGLE
from irgym.envs.graph.ir.node import Node
from irgym.envs.graph.ir.reading import mark_apart
from irgym.envs.graph.ir.types import TensorType
from irgym.envs.graph.ir.weights import Stored, Weights, weight_of
from irgym.envs.graph.ir.writing import model_of
from irgym.envs.graph.rewriting.rule import Rule
from irgym.envs.graph.rewriting.verification import verify
from irgym.envs.graph.running.artefacts import FILE, WEIGHTS

OPSET = 23
"""Operator set of instances, which has the operators of all patterns."""


def written(rule: Rule, seed: int, block: int, folder: Path) -> Path:
    """Write an instance of a rule in float32, in the form in which opened models are stored.

    Unlike opened models, this one has types for the results of ONNX Runtime's contrib operators.

    Args:
        rule: The rule.
        seed: Seed of the instance.
        block: Channels of a block.
        folder: Folder for the model.
    """
    instance = verify(rule, np.random.default_rng(seed), block)
    graph = instance.graph
    arrays = {name: _single(instance.weights.array(weight)) for name, weight in graph.weights.items()}
    types = {
        name: TensorType(kind.dtype.replace("float64", "float32"), kind.shape)
        for name, kind in graph.types.items()
    }
    narrow = replace(
        graph,
        nodes={name: _cast_to_single(node) for name, node in graph.nodes.items()},
        types=types,
        weights={name: weight_of(name, array) for name, array in arrays.items()},
        opsets=(("", OPSET),),
    )
    model = model_of(narrow, Weights(arrays), whole=True)
    for name in graph.producers:
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(types[name].dtype))
        model.graph.value_info.append(helper.make_tensor_value_info(name, kind, types[name].shape))
    path = folder / f"{rule.name}.onnx"
    whole = path.with_suffix(".whole.onnx")
    whole.write_bytes(model.SerializeToString())
    path.with_suffix(FILE).write_text(str(whole))  # what checks take for the file that it was read from
    apart: dict[str, NDArray[Any]] = {}
    for tensor in model.graph.initializer:
        weight = narrow.weights[tensor.name]
        if isinstance(weight, Stored):
            apart[tensor.name] = arrays[tensor.name]
            mark_apart(tensor, weight)
    path.write_bytes(model.SerializeToString())
    path.with_suffix(WEIGHTS).write_bytes(save(apart))
    return path


def _single(array: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(array, np.float32) if array.dtype == np.float64 else array


def _cast_to_single(node: Node) -> Node:
    to = (("to", DOUBLE),)
    return (
        replace(node, attributes=(("to", SINGLE),))
        if node.operator == "Cast" and node.attributes == to
        else node
    )
