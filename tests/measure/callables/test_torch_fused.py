"""Fused operators of attention in plain ones, against torch's."""

import math
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")

from irgym.measure.callables import torch_fused  # noqa: E402

WIDTH, HEADS, LENGTH, BATCH = 8, 2, 5, 3


def drawn(*shape: int) -> Any:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


def weights() -> tuple[Any, ...]:
    return drawn(3 * WIDTH, WIDTH), drawn(3 * WIDTH), drawn(WIDTH, WIDTH), drawn(WIDTH)


def masks() -> dict[str, tuple[Any, int | None]]:
    keys = torch.zeros(BATCH, LENGTH)
    keys[:, -2:] = -math.inf
    causal = torch.ones(LENGTH, LENGTH, dtype=torch.bool).triu(1).expand(BATCH, HEADS, LENGTH, LENGTH)
    return {"none": (None, None), "keys": (keys, 1), "all": (causal, 2), "numbers": (0.5 * causal, 2)}


@pytest.mark.parametrize("kind", ["none", "keys", "all", "numbers"])
def test_attention(kind: str):
    x, (mask, number) = drawn(BATCH, LENGTH, WIDTH), masks()[kind]
    for need_weights, average in ((True, True), (True, False), (False, True)):
        given = (x, x, x, WIDTH, HEADS, *weights(), mask, need_weights, average, number)
        with torch.inference_mode():
            found = torch_fused._multi_head_attention(*given)
            wanted = torch._native_multi_head_attention(*given)
        torch.testing.assert_close(found[0], wanted[0], rtol=1e-4, atol=1e-4)
        if need_weights:
            torch.testing.assert_close(found[1], wanted[1], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", ["none", "keys", "all"])
@pytest.mark.parametrize("gelu", [False, True])
@pytest.mark.parametrize("norm_first", [False, True])
def test_an_encoder_layer(kind: str, gelu: bool, norm_first: bool):
    norms = [drawn(WIDTH) for _ in range(4)]
    feed = drawn(16, WIDTH), drawn(16), drawn(WIDTH, 16), drawn(WIDTH)
    x = drawn(BATCH, LENGTH, WIDTH)
    given = (x, WIDTH, HEADS, *weights(), gelu, norm_first, 1e-5, *norms, *feed, *masks()[kind])
    with torch.inference_mode():
        found = torch_fused._encoder_layer(*given)
        wanted = torch._transformer_encoder_layer_fwd(*given)
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-4)
