"""A tuned module against what it was made of: it is never said to be faster where it is not."""

import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest

import irgym
from irgym.base.errors import IrgymError
from irgym.judging.calls import time_calls

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.timed

MARGIN = 1.1
"""Ratio from which a program counts as said to be faster."""

MODULES: dict[str, tuple[Any, tuple[int, ...]]] = {
    "layers": (
        torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.GELU(), torch.nn.Linear(512, 64)),
        (32, 256),
    ),
    "normalisation": (torch.nn.Sequential(torch.nn.LayerNorm(512), torch.nn.Softmax(-1)), (64, 512)),
}


def least_s(function: Callable[..., Any], inputs: Sequence[Any]) -> float:
    """Return the least time of a call, of twenty."""
    times: list[float] = []
    for _ in range(20):
        started = time.perf_counter()
        function(*inputs)
        times.append(time.perf_counter() - started)
    return min(times)


def is_slower(ours: Callable[..., Any], theirs: Callable[..., Any], inputs: Sequence[Any]) -> bool:
    """Say whether a function is slower at all of some times: something else may slow down one of two."""
    with torch.inference_mode():
        for _ in range(6):
            if least_s(ours, inputs) <= least_s(theirs, inputs):
                return False
            time.sleep(0.3)
    return True


def work(size: int) -> Callable[[Any], Any]:
    def function(x: Any) -> Any:
        for _ in range(size):
            x = x @ x
        return x

    return function


def test_a_function_that_takes_three_times_as_long_is_a_third_as_fast():
    x = torch.eye(128)
    once, thrice = work(4), work(12)
    assert 0.2 < time_calls(thrice, once, [x], 9, "once").ratio < 0.5
    assert 2.0 < time_calls(once, thrice, [x], 9, "thrice").ratio < 5.0
    assert 0.8 < time_calls(once, once, [x], 9, "once").ratio < 1.25


def test_results_that_are_promises_are_waited_for():
    jax = pytest.importorskip("jax")
    x = jax.numpy.eye(512)
    once, thrice = (jax.jit(work(size)) for size in (4, 12))
    assert time_calls(thrice, once, [x], 9, "once").ratio < 0.6
    with pytest.raises(IrgymError, match="shapes only"):
        time_calls(once, once, [jax.ShapeDtypeStruct((2, 2), "float32")], 3, "once")


@pytest.mark.parametrize(
    ("name", "environment"),
    [("layers", "graph"), ("normalisation", "linalg")],
)
def test_a_module_is_not_said_to_be_faster_where_it_is_slower(name: str, environment: str):
    pytest.importorskip({"graph": "onnxscript", "linalg": "torch_mlir"}[environment])
    module, shape = MODULES[name]
    module, x = module.eval(), torch.randn(shape, generator=torch.Generator().manual_seed(0))
    fast = irgym.tune(module, x, environment=environment, seconds=0.1)
    assert fast.validated
    if fast.versus_original(rounds=9).ratio > MARGIN:
        assert not is_slower(fast, module, [x])


def test_a_tuned_module_that_is_slower_is_said_to_be():
    pytest.importorskip("onnxscript")
    module, x = torch.nn.Linear(256, 256).eval(), torch.randn(64, 256)
    fast = irgym.tune(
        module, x, environment="graph", searching=irgym.Searching(search="random", evaluations=2)
    )
    # What is called in the module's place.
    vars(fast)["_function"] = torch.nn.Sequential(*[module] * 5)
    assert fast.versus_original(rounds=9).ratio < 0.6
