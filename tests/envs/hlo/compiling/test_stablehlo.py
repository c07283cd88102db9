"""Parts of the conversion that jaxlib lacks: bitcasts, donations and callbacks."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jaxlib import _hlo

from irgym.envs.hlo.compiling.execution import compile_module
from irgym.envs.hlo.compiling.stablehlo import stablehlo

KINDS = {"f32": np.float32, "s32": np.int32, "c64": np.complex64, "pred": np.bool_}
SHAPES = [(6,), (2, 3), (3, 2), (1, 6), (1, 3, 2), (6, 1, 1)]


def proto_of(*lines):
    text = "HloModule m\nENTRY e {\n" + "\n".join(lines) + "\n}"
    return _hlo.hlo_module_from_text(text).as_serialized_hlo_module_proto()


def shape_text(kind, shape, minor_to_major):
    return f"{kind}[{','.join(map(str, shape))}]{{{','.join(map(str, minor_to_major))}}}"


def in_memory(values, minor_to_major):
    return values.transpose(minor_to_major[::-1]).reshape(-1)


@settings(deadline=None, max_examples=15)
@given(data=st.data(), kind=st.sampled_from(list(KINDS)))
def test_a_bitcast_keeps_what_is_in_memory(data, kind):
    before, after = (data.draw(st.sampled_from(SHAPES)) for _ in range(2))
    source, result = (data.draw(st.sampled_from(list(permutations(range(len(s)))))) for s in (before, after))
    proto = proto_of(
        f"p = {shape_text(kind, before, source)} parameter(0)",
        f"ROOT r = {shape_text(kind, after, result)} bitcast(p)",
    )
    x = np.array([1, 2, 3, 0, 5, 0]).astype(KINDS[kind]).reshape(before)
    (found,) = compile_module(proto).run([x])
    assert found.shape == after
    np.testing.assert_array_equal(in_memory(found, result), in_memory(x, source))


@pytest.mark.parametrize("shape", ["f32[]", "f32[1]", "f32[1,1]"])
def test_scalars(shape):
    proto = proto_of("p = f32[] parameter(0)", f"b = {shape} bitcast(p)", "ROOT r = f32[] bitcast(b)")
    (found,) = compile_module(proto).run([np.asarray(2.0, np.float32)])
    assert found == 2


def test_a_bitcast_within_a_loop():
    proto = _hlo.hlo_module_from_text(
        """HloModule m
        test { p = (s32[], f32[2,3]) parameter(0)
          i = s32[] get-tuple-element(p), index=0
          n = s32[] constant(3)
          ROOT r = pred[] compare(i, n), direction=LT }
        body { p = (s32[], f32[2,3]) parameter(0)
          i = s32[] get-tuple-element(p), index=0
          x = f32[2,3]{1,0} get-tuple-element(p), index=1
          one = s32[] constant(1)
          j = s32[] add(i, one)
          flat = f32[6]{0} bitcast(x)
          twice = f32[6]{0} add(flat, flat)
          y = f32[2,3]{1,0} bitcast(twice)
          ROOT r = (s32[], f32[2,3]) tuple(j, y) }
        ENTRY e { x = f32[2,3] parameter(0)
          zero = s32[] constant(0)
          t = (s32[], f32[2,3]) tuple(zero, x)
          w = (s32[], f32[2,3]) while(t), condition=test, body=body
          ROOT r = f32[2,3] get-tuple-element(w), index=1 }"""
    ).as_serialized_hlo_module_proto()
    x = np.ones((2, 3), np.float32)
    assert np.all(compile_module(proto).run([x])[0] == 8)


def test_modules_without_bitcasts_are_unchanged():
    text = stablehlo(proto_of("p = f32[6] parameter(0)", "ROOT r = f32[6] add(p, p)"))
    assert "stablehlo.add" in text
    assert "bitcast" not in text
