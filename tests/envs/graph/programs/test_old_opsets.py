"""Operators of opsets 7 to 12: `fuzz/graph/old_opsets.py` has models of all, and others mean the same now."""

import onnx
import pytest
from fuzz.graph.old_opsets import OPSETS
from fuzz.graph.reading.operators import samples
from odd_models import text
from onnx import helper

from irgym.base.errors import ProgramError
from irgym.envs.graph.programs.opsets import converted
from irgym.envs.graph.programs.upgrading import REWRITES, UPGRADED

HEAD = '<ir_version: 8, opset_import: ["" : 18, "local" : 1]> '

RANDOM = {"Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}
TEXTS = {"StringNormalizer", "TfIdfVectorizer"}
SEQUENCES = {"ConcatFromSequence", "SplitToSequence"} | {
    f"Sequence{what}" for what in ("At", "Construct", "Empty", "Erase", "Insert", "Length")
}
OUTER = {"Constant", "If"}
"""Constants are weights of all samples, and `If` is around each."""


def test_all_operators_have_samples():
    """Random operators are refused, and strings and sequences are no inputs."""
    known = {
        schema.name
        for schema in onnx.defs.get_all_schemas_with_history()
        if schema.domain == "" and schema.since_version <= OPSETS[-1]
    }
    assert known - {sample.operator for sample in samples(0)} == RANDOM | TEXTS | SEQUENCES | OUTER


@pytest.mark.parametrize(("own", "said"), [(18, None), (17, None), (11, "and its function f of opset 11")])
def test_functions_of_other_opsets_are_inlined_where_they_mean_the_same(own: int, said: str | None):
    model = text("g (float[3,4] x) => (float[3,4] y) { y = local.f(x) }", HEAD)
    body = [helper.make_node("Softmax", ["a"], ["b"], axis=0)]
    model.functions.append(
        helper.make_function("local", "f", ["a"], ["b"], body, [helper.make_opsetid("", own)])
    )
    if said:
        with pytest.raises(ProgramError, match=said):
            converted(model, "m.onnx")
    else:
        assert [node.op_type for node in converted(model, "m.onnx").graph.node] == ["Softmax"]


ADDED = {
    "axis": 1,  # of quantisation, which had one scale
    "allowzero": 0,
    "batch_dims": 0,
    "ceil_mode": 0,
    "layout": 0,
    "mode": b"DCR",
    "reduction": b"none",
    "select_last_index": 0,
    "start": 0,
    "storage_order": 0,
}
"""New attributes of operators, with the defaults that preserve their old meaning."""


@pytest.mark.parametrize("opset", OPSETS)
def test_operators_that_are_not_rewritten_mean_the_same(opset: int):
    """By the schemas: no attribute is missing, no new input required, and new attributes change nothing."""
    schemas = onnx.defs.get_all_schemas_with_history()
    names = {schema.name for schema in schemas if schema.domain == ""} - {"Constant"}
    for name in sorted(names.difference(REWRITES)):
        if not onnx.defs.has(name, opset, ""):
            continue
        old, new = onnx.defs.get_schema(name, opset), onnx.defs.get_schema(name, UPGRADED)
        assert not new.deprecated and new.min_input <= old.min_input, name
        assert len(new.inputs) >= len(old.inputs) and len(new.outputs) >= len(old.outputs), name
        for kept in old.attributes:
            assert _default(old, kept) == _default(new, kept), (name, kept)
        for added in new.attributes.keys() - old.attributes:
            assert _default(new, added) in (None, ADDED.get(added)), (name, added)


def _default(schema: onnx.defs.OpSchema, name: str) -> object:
    default = schema.attributes[name].default_value
    return helper.get_attribute_value(default) if default.type else None
