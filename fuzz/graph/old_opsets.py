"""All operators of opsets 7 to 12, each alone and inside `If`: results as from the file, or a refusal.

For each operator and each of these opsets there are a few models, with the attributes and inputs that the
operator had then. Those that ONNX Runtime runs are opened, rewritten at random, exported, and run beside the
original file, on the same inputs, without ONNX Runtime's optimisation. Seeds go through all models.
"""

import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper

from fuzz.fuzzer import Tally, part
from fuzz.graph.reading.opening import Refused, exported, ran
from fuzz.graph.reading.operators import samples
from fuzz.graph.reading.samples import Sample

Array = NDArray[Any]

OPSETS = range(7, 13)
"""The opsets that are converted."""

IR_VERSION = 7
"""IR version of the models, that of opset 12."""

STEPS = 4
"""Greatest number of rewrites of a model."""

CLOSE = 1e-5
"""Greatest accepted difference of results, relative to the greatest: rewrites reorder sums."""


EACH = 20
"""Pairs of a sample and an opset of a seed."""

FAULTS = ("wrong", "traceback", "not run after rewrites")
"""Outcomes that are faults."""


@dataclass(frozen=True)
class Case:
    """A model of an old operator.

    Attributes:
        name: Name of the model.
        model: The model; None if ONNX Runtime does not run it.
        feeds: Inputs by name.
        why: Reason for which ONNX Runtime does not run it.
    """

    name: str
    model: onnx.ModelProto | None
    feeds: Mapping[str, Array]
    why: str = ""


def _both(sample: Sample, opset: int) -> Iterator[Case]:
    """Yield the model of a sample alone, and inside both branches of `If`."""
    arrays = {f"x{place}": array for place, array in enumerate(sample.inputs) if array is not None}
    weights = {name: array for name, array in arrays.items() if int(name[1:]) in sample.constant}
    feeds = {name: array for name, array in arrays.items() if name not in weights}
    names = ["" if array is None else f"x{place}" for place, array in enumerate(sample.inputs)]
    made = [f"y{place}" for place in range(sample.outputs)]
    node = helper.make_node(sample.operator, names, made, **sample.attributes)
    label = f"{sample.operator}{sample.label}, opset {opset}"
    results = [onnx.ValueInfoProto(name=name) for name in made]
    try:
        [found] = ran(_model([node], feeds, weights, results, opset).SerializeToString(), [feeds])
    except Refused as error:
        yield Case(label, None, feeds, str(error))
        return
    results = [_untold(name, array) for name, array in zip(made, found, strict=True)]
    yield Case(label, _model([node], feeds, weights, results, opset), feeds)
    branches = {name: helper.make_graph([node], name, [], results) for name in ("then_branch", "else_branch")}
    chosen = [f"z{place}" for place in range(sample.outputs)]
    choice = helper.make_node("If", ["choose"], chosen, **branches)
    outer = [_untold(name, array) for name, array in zip(chosen, found, strict=True)]
    both = {**feeds, "choose": np.array(True)}
    yield Case(f"{label}, in If", _model([choice], both, weights, outer, opset), both)


def _untold(name: str, array: Array) -> onnx.ValueInfoProto:
    """Return a result with a known element type and no shape."""
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), None)


def _model(
    nodes: Sequence[onnx.NodeProto],
    feeds: Mapping[str, Array],
    weights: Mapping[str, Array],
    results: Sequence[onnx.ValueInfoProto],
    opset: int,
) -> onnx.ModelProto:
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in feeds.items()
    ]
    tensors = [onnx.numpy_helper.from_array(array, name) for name, array in weights.items()]
    graph = helper.make_graph(list(nodes), "old", inputs, list(results), tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=IR_VERSION)


def outcome(case: Case, seed: int, folder: Path) -> tuple[str, str]:
    """Return the outcome of a model, and the reason or the failure."""
    if case.model is None:
        return "not run by ONNX Runtime", f"{case.name}: {case.why}"
    try:
        [wanted] = ran(case.model.SerializeToString(), [case.feeds])
    except Refused as error:
        return "not run by ONNX Runtime", f"{case.name}: {error}"
    ranges = {
        name: (int(array.min()), int(array.max()) + 1)
        for name, array in case.feeds.items()
        if array.dtype.kind in "iu" and array.size
    }
    try:
        made = exported(case.model, folder / "old.onnx", ranges, np.random.default_rng(seed), STEPS)
    except Refused as error:
        return "refused", f"{case.name}: {error}"
    except Exception:  # noqa: BLE001  # a bug, whatever it is, is reported
        return "traceback", f"{case.name}: {traceback.format_exc()}"
    try:
        [found] = ran(made.content, [case.feeds])
    except Refused as error:
        return "not run after rewrites", f"{case.name}: {made.schedule}: {error}"
    if not all(_close(result, other) for result, other in zip(found, wanted, strict=True)):
        return "wrong", f"{case.name}: {made.schedule}"
    return "right", ""


def _close(found: Array, wanted: Array) -> bool:
    if found.shape != wanted.shape or found.dtype != wanted.dtype:
        return False
    if wanted.dtype.kind != "f":
        return bool(np.array_equal(found, wanted))
    with np.errstate(invalid="ignore"):
        greatest = np.abs(wanted[np.isfinite(wanted)]).max(initial=0.0)
        return bool(np.allclose(found, wanted, CLOSE, CLOSE * greatest, equal_nan=True))


def run(seed: int) -> Tally:
    """Try the models of some operators, alone and inside `If`."""
    tally = Tally()
    count = len(_every(0))
    places, turn = part(range(count), seed, EACH)
    every = _every(turn)
    with TemporaryDirectory() as folder:
        for sample, opset in (every[place] for place in places):
            for case in _both(sample, opset):
                came, why = outcome(case, turn, Path(folder))
                tally.add(came, f"{came}: {why}" if came in FAULTS else "")
            tally.reach("operators", [sample.operator])
    return tally


def _every(seed: int) -> list[tuple[Sample, int]]:
    """Return the samples of all operators, with each of their opsets."""
    return [(sample, opset) for sample in samples(seed) for opset in OPSETS if opset in sample.opsets]
