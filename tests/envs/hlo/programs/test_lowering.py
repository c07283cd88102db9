import io
import os
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export
from jaxlib import _hlo
from numpy.typing import NDArray

from irgym.base.errors import ProgramError, StorageError
from irgym.envs.hlo.programs.families import FAMILIES
from irgym.envs.hlo.programs.lowering import convert, lower, lower_function
from irgym.envs.hlo.programs.models.catalogue import BUILDERS
from irgym.envs.hlo.programs.models.training import OPTIMIZERS, inference, training_step
from irgym.envs.hlo.programs.uris import parse_program

from .quick import quick_jit


def _module(proto: bytes) -> Any:
    return _hlo.HloModule.from_serialized_hlo_module_proto(proto)


def _size(proto: bytes) -> int:
    return sum(len(computation.instructions()) for computation in _module(proto).computations())


@cache
def _lowered(uri: str) -> int:
    """Return the number of instructions of a program."""
    return _size(lower(uri))


def test_every_family_has_a_builder():
    assert set(BUILDERS) == set(FAMILIES)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_lowers_and_inference_is_smaller(family: str):
    step = _lowered(f"hlo://{family}")
    forward = _lowered(f"hlo://{family}?mode=forward")
    assert 20 < forward <= step
    assert (forward == step) == (FAMILIES[family].options[0].choices == ("forward",))


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        ("hlo://gpt2?layers=1", 2051),
        ("hlo://gpt2?layers=2", 2709),
        ("hlo://bert?layers=2", 3349),
        ("hlo://resnet18", 4858),
        ("hlo://mlp", 450),
    ],
)
def test_sizes_of_training_steps(uri: str, expected: int):
    assert _lowered(uri) == pytest.approx(expected, rel=0.04)


def test_sizes_of_arrays_hardly_matter():
    tiny, full = (_lowered(f"hlo://gpt2?layers=1&shape={shape}") for shape in ("tiny", "full"))
    assert full == pytest.approx(tiny, rel=0.01)


def test_options_change_the_graph():
    options = ("", "dropout=false", "scan=true", "remat=true", "clip=false", "dtype=bf16", "layers=2")
    options += tuple(f"optimizer={name}" for name in OPTIMIZERS if name != "adam")
    sizes = [_lowered(f"hlo://gpt2?layers=1&{option}".removesuffix("&")) for option in options[:-5]]
    sizes += [_lowered(f"hlo://mlp?{option}") for option in options[-4:]]
    assert len(set(sizes)) == len(sizes)


def test_two_processes_give_the_same_bytes():
    code = (
        "import sys; from irgym.envs.hlo.programs.lowering import lower;"
        "sys.stdout.buffer.write(lower('hlo://gpt2?layers=1'))"
    )
    first, second = (
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            stdout=subprocess.PIPE,
            check=True,
        ).stdout
        for seed in ("1", "2")
    )
    assert first == second and _size(first) > 100


def test_graphs_do_not_name_where_irgym_is_installed():
    assert b"irgym" not in lower("hlo://mlp")


def _ones(leaf: jax.ShapeDtypeStruct) -> NDArray[Any]:
    # Half weights: an exact zero has no slope in Adafactor's root mean square, and ones explode.
    return np.full(leaf.shape, 0.5 if jnp.issubdtype(leaf.dtype, jnp.floating) else 1, leaf.dtype)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_a_training_step_of_any_optimiser_moves_all_weights(optimizer: str, dtype: str):
    options = parse_program(f"hlo://mlp?optimizer={optimizer}&dtype={dtype}&activation=tanh").options
    step, shapes = training_step(BUILDERS["mlp"](options), options)
    arguments = jax.tree.map(_ones, shapes)
    weights, _, count, _, loss = quick_jit(step)(*arguments)
    assert np.isfinite(loss) and float(count) == 1.5
    for before, after in zip(jax.tree.leaves(arguments[0]), jax.tree.leaves(weights), strict=True):
        assert before.dtype == after.dtype == jnp.float32 and not np.array_equal(before, after)


def test_caching_decodes_what_the_whole_sequence_gives():
    """The cached step and a forward pass over the whole text agree on the most probable next token."""
    text = [3, 1, 4, 1, 5, 9, 2, 6]
    sizes = f"layers=2&width=32&vocabulary=64&batch=1&mode=forward&{{}}={len(text)}"
    whole = parse_program("hlo://gpt2?" + sizes.format("sequence")).options
    step = parse_program("hlo://decode?sampling=greedy&" + sizes.format("context")).options
    forward, (shapes, _, _) = inference(BUILDERS["gpt2"](whole), whole)
    cached, (_, _, inputs) = inference(BUILDERS["decode"](step), step)
    rng = np.random.default_rng(0)
    weights = jax.tree.map(lambda leaf: 0.3 * rng.standard_normal(leaf.shape, np.float32), shapes)
    expected = np.argmax(quick_jit(forward)(weights, (), np.asarray([text], np.int32)), axis=-1)[0]
    next_token = quick_jit(cached)
    state = jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), inputs)
    state["temperature"] = np.ones((), np.float32)
    for place, token in enumerate(text):
        state["tokens"] = np.asarray([token], np.int32)
        chosen, state["caches"], state["place"] = next_token(weights, (), state)
        assert int(chosen[0]) == int(expected[place])


def test_a_tree_and_a_loop_give_the_same_recurrence():
    results = []
    for how in ("tree", "loop"):
        options = parse_program(f"hlo://ssm?mode=forward&recurrence={how}").options
        forward, shapes = inference(BUILDERS["ssm"](options), options)
        results.append(quick_jit(forward)(*jax.tree.map(_ones, shapes)))
    assert np.allclose(*results, rtol=1e-4)


def _shape() -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct((4, 8), jnp.float32)


def _wave(x: jax.Array) -> jax.Array:
    return jnp.sin(x) @ x.T


def _proto() -> bytes:
    return lower_function(_wave, (_shape(),))


def _wrapped(content: bytes) -> bytes:
    """The bytes as field 1 of a message: how an HloProto holds its module."""
    length, head = len(content), b"\x0a"
    while length > 127:
        head += bytes([length & 127 | 128])
        length >>= 7
    return head + bytes([length]) + content


def _bytecode() -> bytes:
    stream = io.BytesIO()
    jax.jit(_wave).lower(_shape()).compiler_ir("stablehlo").operation.write_bytecode(stream)
    return stream.getvalue()


FORMS: dict[str, Callable[[], bytes]] = {
    "graph.hlo.txt": lambda: _module(_proto()).to_string().encode(),
    "graph.hlo": lambda: _module(_proto()).to_string().encode(),
    "graph.pb": _proto,
    "graph.hlo.pb": lambda: _wrapped(_proto()),
    "graph.mlir": lambda: jax.jit(_wave).lower(_shape()).as_text().encode(),
    "graph.stablehlo": lambda: export.export(jax.jit(_wave))(_shape()).mlir_module_serialized,
    "graph.mlirbc": _bytecode,
    "graph.bc": _bytecode,
}


@pytest.mark.parametrize("name", FORMS)
def test_files_of_every_form_convert_to_the_same_graph(name: str, tmp_path: Path):
    (tmp_path / name).write_bytes(FORMS[name]())
    assert _size(lower(f"hlo:{tmp_path / name}")) == _size(_proto())


@pytest.mark.parametrize(
    "content", [b"", b"hello", b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", b"\x0a\x05ab"]
)
@pytest.mark.parametrize("suffix", [".hlo", ".pb", ".mlir", ".mlirbc"])
def test_damaged_files_are_named_in_one_line(content: bytes, suffix: str, tmp_path: Path):
    source = tmp_path / f"graph{suffix}"
    source.write_bytes(content)
    with pytest.raises(ProgramError, match=f"graph{suffix}") as caught:
        convert(str(source))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", FORMS)
def test_truncated_files_are_refused(name: str, tmp_path: Path):
    content = FORMS[name]()
    (tmp_path / name).write_bytes(content[: len(content) * 2 // 3])
    with pytest.raises(ProgramError, match=name):
        convert(str(tmp_path / name))


def test_dynamic_shapes_are_refused(tmp_path: Path):
    shape = jax.ShapeDtypeStruct(export.symbolic_shape("rows, 8"), jnp.float32)
    (tmp_path / "graph.mlir").write_bytes(export.export(jax.jit(_wave))(shape).mlir_module_serialized)
    with pytest.raises(ProgramError, match="dynamic shapes"):
        convert(str(tmp_path / "graph.mlir"))


def test_functions_are_lowered_jitted_or_not():
    jitted = lower_function(jax.jit(_wave), (jnp.ones((4, 8)),))
    assert _module(jitted).to_string() == _module(_proto()).to_string()


def test_a_function_that_jax_refuses_is_named():
    def mismatch(x: jax.Array) -> jax.Array:
        return x @ x

    with pytest.raises(ProgramError, match="jax cannot lower mismatch"):
        lower_function(mismatch, (_shape(),))


def test_a_tensor_that_xla_cannot_count_is_named():
    def vast(x: Any) -> Any:
        return x[:, None, None] + x[None, :, None] + x[None, None, :]

    with pytest.raises(ProgramError, match="jax cannot lower vast: overflow in static extent") as caught:
        lower_function(vast, (jax.ShapeDtypeStruct((1 << 22,), np.float32),))
    assert "\n" not in str(caught.value)


def test_unreadable_files_are_named(tmp_path: Path):
    with pytest.raises(StorageError, match="cannot read"):
        convert(str(tmp_path / "missing.pb"))
