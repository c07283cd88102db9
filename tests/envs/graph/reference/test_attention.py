import numpy as np
import pytest

from irgym.envs.graph.reference.calls import OperatorError
from irgym.envs.graph.reference.operators import evaluate


def floats(rng, sizes):
    return rng.uniform(-1.5, 1.5, sizes).astype(np.float32)


def sizes(rng, count, most=6):
    return [int(size) for size in rng.integers(1, most, count)]


def masked(rng, kind, batch, length, total):
    """Return a mask of a kind; each place of the query sees one place at least."""
    if kind == "ends":
        return rng.integers(1, total + 1, batch).astype(np.int32)
    if kind == "ends, starts":
        ends = rng.integers(1, total + 1, batch)
        return np.concatenate([ends, rng.integers(0, ends)]).astype(np.int32)
    if kind is None:
        return None
    mask = (rng.random((batch, total) if kind == "places" else (batch, length, total)) < 0.6).astype(np.int32)
    mask[..., 0] = 1
    return mask


def scaled(rng, index):
    given = {"scale": rng.uniform(0.2, 1)} if index % 3 == 0 else {}
    return given | ({"mask_filter_value": -500.0} if index % 5 == 0 else {})


@pytest.mark.parametrize("mask", [None, "ends", "places", "pairs"])
@pytest.mark.parametrize("causal", [0, 1])
def test_multi_head(oracle, rng, mask, causal):
    for index in range(24):
        batch, length, total, heads, size, value = sizes(rng, 6)
        if causal:
            total = length
        q = floats(rng, (batch, length, heads * size))
        k, v = floats(rng, (batch, total, heads * size)), floats(rng, (batch, total, heads * value))
        bias = floats(rng, heads * (2 * size + value)) if index % 2 else None
        added = None
        if index & 2:
            added = floats(rng, (batch if index & 4 else 1, heads if index & 8 else 1, length, total))
        given = {"num_heads": heads, "unidirectional": causal, **scaled(rng, index)}
        chosen = masked(rng, mask, batch, length, total)
        oracle.agrees("com.microsoft.MultiHeadAttention", [q, k, v, bias, chosen, added], given)


@pytest.mark.parametrize("mask", [None, "ends", "ends, starts", "places", "pairs"])
@pytest.mark.parametrize("causal", [0, 1])
def test_packed(oracle, rng, mask, causal):
    for index in range(24):
        batch, length, heads, size, value, hidden = sizes(rng, 6)
        value = value if index % 4 == 0 else size
        widths = (heads * size, heads * size, heads * value)
        x, weights = floats(rng, (batch, length, hidden)), floats(rng, (hidden, sum(widths)))
        bias = floats(rng, sum(widths))
        added = None
        if index & 2:
            added = floats(rng, (batch if index & 4 else 1, heads if index & 8 else 1, length, length))
        given = {"num_heads": heads, "unidirectional": causal, **scaled(rng, index)}
        given |= {"qkv_hidden_sizes": widths} if index % 4 == 0 else {}
        chosen = masked(rng, mask, batch, length, length)
        oracle.agrees("com.microsoft.Attention", [x, weights, bias, chosen, None, added], given, rtol=1e-4)


@pytest.mark.parametrize("mask", [None, "bool", "float"])
@pytest.mark.parametrize("joined", [False, True])
def test_onnx(oracle, rng, mask, joined):
    for index in range(32):
        batch, length, total, heads, shared, size, value = sizes(rng, 7, 5)
        before = 3 if index & 4 else 0
        length += before > 0
        q = floats(rng, (batch, heads * shared, length, size))
        k, v = (floats(rng, (batch, heads, total, length)) for length in (size, value))
        past = [floats(rng, (batch, heads, before, length)) if before else None for length in (size, value)]
        given = {"is_causal": index & 1}
        if index & 2:
            given["softcap"] = 2.0
        if index % 3 == 0:
            given["scale"] = 0.4
        if joined:
            q, k, v = (array.swapaxes(1, 2).reshape(batch, array.shape[2], -1) for array in (q, k, v))
            given |= {"q_num_heads": heads * shared, "kv_num_heads": heads}
        chosen = None
        if mask:
            shape = [(length, before + total), (batch, 1, length, before + total)][index & 1]
            chosen = rng.random(shape) < 0.7 if mask == "bool" else floats(rng, shape)
        given |= {"qk_matmul_output_mode": index >> 3 & 3} if index >> 3 & 3 else {}
        outputs = 3 if before else 1
        # ONNX Runtime rounds the scale of float64 to float32.
        oracle.agrees("Attention", [q, k, v, chosen, *past], given, outputs, opset=23, doubles=False)


def test_places_that_see_nothing_are_zero(oracle, rng):
    for _ in range(20):
        q, k, v = (floats(rng, (2, 2, 3, 4)) for _ in range(3))
        seen = rng.random((3, 3)) < 0.5
        seen[1] = False
        oracle.agrees("Attention", [q, k, v, seen], outputs=4, opset=23, doubles=False)
        assert not evaluate("Attention", [q, k, v, seen], {})[0][:, :, 1].any()


def test_unsupported_operands_and_attributes_are_refused():
    x = np.zeros((1, 2, 4))
    with pytest.raises(OperatorError, match="a past state"):
        past = np.zeros((2, 1, 2, 3, 2))
        evaluate("com.microsoft.Attention", [x, np.zeros((4, 12)), None, None, past], {"num_heads": 2})
    with pytest.raises(OperatorError, match="do_rotary"):
        evaluate("com.microsoft.Attention", [x, np.zeros((4, 12))], {"num_heads": 2, "do_rotary": 1})
    with pytest.raises(OperatorError, match="one query for many keys"):
        query, many = np.zeros((1, 1, 1, 2)), np.zeros((1, 1, 2, 2))
        evaluate("Attention", [query, many, many, None, query, query], {"is_causal": 1})
    with pytest.raises(OperatorError, match="of other than 3 dimensions"):
        evaluate("com.microsoft.MultiHeadAttention", [np.zeros((1, 2, 2, 3, 2))], {"num_heads": 2})
    with pytest.raises(OperatorError, match="mask of shape"):
        mask = np.zeros(5, np.int32)
        evaluate("com.microsoft.MultiHeadAttention", [x, x, x, None, mask], {"num_heads": 2})
