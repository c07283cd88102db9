"""Random arguments, on modules defined in the tests."""

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jaxlib import _hlo

from irgym.base.errors import ProgramError
from irgym.envs.hlo.checking.inputs import parameters, perturbed, random_arguments, turned, without_greatest


def from_text(text):
    return _hlo.hlo_module_from_text(text).as_serialized_hlo_module_proto()


def taking(*types):
    lines = "\n".join(f"  p{place} = {kind} parameter({place})" for place, kind in enumerate(types))
    names = ", ".join(f"p{place}" for place in range(len(types)))
    return from_text(f"HloModule m\nENTRY e {{\n{lines}\n  ROOT t = ({', '.join(types)}) tuple({names})\n}}")


def lowered(function, *shapes):
    given = [jax.ShapeDtypeStruct(shape, np.float32) for shape in shapes]
    return jax.jit(function).lower(*given).compiler_ir("hlo").as_serialized_hlo_module_proto()


def kinds(arguments):
    return [(argument.shape, argument.dtype) for argument in arguments]


TYPES = {
    "f64": np.float64,
    "f32": np.float32,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f8e4m3fn": ml_dtypes.float8_e4m3fn,
    "f8e8m0fnu": ml_dtypes.float8_e8m0fnu,
    "f4e2m1fn": ml_dtypes.float4_e2m1fn,
    "c64": np.complex64,
    "c128": np.complex128,
    "s4": ml_dtypes.int4,
    "u4": ml_dtypes.uint4,
    "s8": np.int8,
    "s64": np.int64,
    "u32": np.uint32,
    "pred": np.bool_,
}


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("dims", [(), (0,), (3,), (5, 2)])
def test_every_type_and_rank(name, dims):
    proto = taking(f"{name}[{','.join(map(str, dims))}]")
    (drawn,) = random_arguments(proto, seed=1)
    assert drawn.shape == dims
    assert drawn.dtype == np.dtype(TYPES[name])
    (again,) = random_arguments(proto, seed=1)
    assert drawn.tobytes() == again.tobytes()


def test_tuples_are_flattened():
    proto = from_text(
        "HloModule m\nENTRY e {\n p = (f32[3], (s32[2], pred[])) parameter(0)\n q = f16[4] parameter(1)\n"
        " ROOT r = f16[4] add(q, q)\n}"
    )
    assert [(parameter.shape, parameter.dtype.name) for parameter in parameters(proto)] == [
        ((3,), "float32"),
        ((2,), "int32"),
        ((), "bool"),
        ((4,), "float16"),
    ]


def test_indices_are_below_every_table():
    for seed in range(5):
        _, _, ids, step = random_arguments(taking("f32[7,16]", "f32[5]", "s32[100]", "s32[]"), seed)
        assert ids.min() == 0
        assert ids.max() == 4
        assert step in (1, 2)


def test_keys_have_arbitrary_bits():
    _, keys = random_arguments(taking("f32[4]", "u32[8,2]"), seed=0)
    assert keys.max() > 1 << 24


def test_second_moments_are_positive_and_weights_are_not():
    def adam(weight, first, second, gradient):
        first = 0.9 * first + 0.1 * gradient
        second = 0.999 * second + 0.001 * gradient**2
        return weight - 0.01 * (first / 0.1) / (jnp.sqrt(second / 0.001) + 1e-8), first, second

    proto = lowered(adam, (64, 4), (64, 4), (64, 4), (64, 4))
    assert [parameter.positive for parameter in parameters(proto)] == [False, False, True, False]
    weight, first, second, _ = random_arguments(proto, seed=0)
    assert weight.min() < 0 < weight.max()
    assert first.min() < 0
    assert second.min() > 0
    assert all(argument.min() > 0 for argument in random_arguments(proto, seed=0, positive=True))


def test_a_reduction_hides_no_sign():
    proto = lowered(lambda x: x / jnp.sqrt(jnp.sum(x * x)), (8,))
    assert not parameters(proto)[0].positive


@pytest.mark.parametrize(
    ("kind", "word"), [("f32[<=3]", "dynamic shape"), ("token[]", "token")], ids=["dynamic", "token"]
)
def test_arguments_that_cannot_be_made_are_refused(kind, word):
    proto = from_text(f"HloModule m\nENTRY e {{\n p = {kind} parameter(0)\n ROOT r = f32[] constant(1)\n}}")
    with pytest.raises(ProgramError, match=word):
        random_arguments(proto, seed=0)


NUMBERS = ["f64", "f32", "f16", "bf16", "c64"]


@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 1 << 20), name=st.sampled_from(NUMBERS))
def test_changes_are_small_and_real(seed, name):
    before = random_arguments(taking(f"{name}[6,5]", "s32[9]"), seed)
    after = perturbed(before, seed)
    assert kinds(after) == kinds(before)
    wide = [arguments[0].astype(np.complex128) for arguments in (before, after)]
    change = np.abs(wide[1] - wide[0])
    assert change.max() > 0
    assert np.all(change <= 1.5 * float(ml_dtypes.finfo(before[0].dtype).eps) * np.abs(wide[0]))
    assert np.array_equal(before[1], after[1])


@pytest.mark.parametrize("name", NUMBERS)
def test_scaled_arguments_are_the_same_numbers_at_another_scale(name):
    module = taking(f"{name}[6,5]", "s32[9]", f"{name}[]")
    plain, scaled = random_arguments(module, 3), random_arguments(module, 3, scale=0.125)
    assert kinds(plain) == kinds(scaled)
    for place in (0, 2):
        np.testing.assert_array_equal(plain[place] * np.asarray(0.125, plain[place].dtype), scaled[place])
    assert np.array_equal(plain[1], scaled[1])


@pytest.mark.parametrize("name", [name for name in TYPES if name != "f8e8m0fnu"])
def test_arguments_turned_round_and_with_a_number_left_out(name):
    arguments = random_arguments(taking(f"{name}[5,2]", f"{name}[]", f"{name}[0]"), 3)
    others = turned(arguments)
    short = without_greatest(arguments)
    for changed in (others, short):
        assert kinds(changed) == kinds(arguments)
    assert others[0].tolist() == arguments[0][::-1, ::-1].tolist()
    assert np.count_nonzero(short[0] != arguments[0]) == (1 if arguments[0].any() else 0)
    if arguments[0].dtype.kind in "biu":
        assert np.all(short[0] <= arguments[0])
