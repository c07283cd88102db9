"""Modules that no program can replace are refused, and a replacement is called like its module."""

import itertools
from collections import namedtuple
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import nn

from irgym.base.errors import IrgymError, ProgramError
from irgym.measure.callables.nesting import flatten
from irgym.measure.callables.torch_comparison import compare, copied, refuse_unsteady
from irgym.measure.callables.torch_modules import InPlace

X = torch.linspace(-1.0, 2.0, 12).reshape(3, 4)
Pair = namedtuple("Pair", "left right")


@dataclass
class Output:
    value: Any


class Function(nn.Module):
    """A function of the module and its inputs."""

    def __init__(self, function: Any, **kept: Any) -> None:
        super().__init__()
        self.function = function
        for name, value in kept.items():
            setattr(self, name, value)

    def forward(self, *inputs: Any) -> Any:
        return self.function(self, *inputs)


def counts(own: Any, x: Any) -> Any:
    own.calls += 1
    return x * 2


def fills(own: Any, x: Any) -> Any:
    own.seen.append(x)
    return x * 2


def alternates(own: Any, x: Any) -> Any:
    return x * next(own.numbers)


UNSTEADY = {
    "counter": (Function(counts, calls=0), X, "changes its attribute calls"),
    "list": (Function(fills, seen=[]), X, "changes its attribute seen"),
    "alternating": (Function(alternates, numbers=itertools.cycle([1, 2])), X, "something else when it is"),
    "random": (Function(lambda _, x: x * torch.rand(())), X, "draws random numbers"),
    "dropout": (nn.Dropout(0.5).train(), X, r"call .eval\(\)"),
    "norm": (nn.BatchNorm1d(4).train(), X, r"changes its buffers .*call .eval\(\).*running_mean"),
    "input": (Function(lambda _, x: x.add_(1)), X, "changes its buffers or inputs"),
    "data": (Function(lambda _, x: x.data.add_(1)), X, "changes its buffers or inputs"),
    "meta": (nn.Linear(4, 2, device="meta"), X, "device meta"),
    "bfloat16": (nn.Linear(4, 2).bfloat16(), X.bfloat16(), r"no bfloat16 numbers: call \.float\(\)"),
    "sparse": (Function(lambda _, x: x * 2), X.to_sparse(), "layout sparse_coo"),
    "numpy": (Function(lambda _, x: x.numpy()), X, "a ndarray is no tensor"),
    "dataclass": (Function(lambda _, x: Output(object())), X, "a object is no tensor"),
    "failing": (Function(lambda _, x: x @ x), X, "raises RuntimeError on its example inputs"),
}


@pytest.mark.parametrize("name", UNSTEADY)
def test_unsteady_modules_are_refused_in_one_sentence(name):
    module, x, words = UNSTEADY[name]
    before = x.clone()
    with pytest.raises(ProgramError, match=words) as caught:
        refuse_unsteady(module, (x,))
    assert "\n" not in str(caught.value)
    assert x.is_sparse or torch.equal(x, before), "the user's inputs stay as they are"


def remembers(own: Any, x: Any) -> Any:
    own.last = x * 2
    return own.last


STEADY = {
    "weights": nn.Linear(4, 2),
    "spectral norm": nn.utils.parametrizations.spectral_norm(nn.Linear(4, 2)).eval(),
    "recurrent": nn.LSTM(4, 3),
    "its last result": Function(remembers, last=None),
    "a function that takes the module": Function(lambda own, x: own.scale * x, scale=3.0),
}


@pytest.mark.parametrize("name", STEADY)
def test_deterministic_modules_are_not_refused(name):
    state = torch.get_rng_state()
    refuse_unsteady(STEADY[name], (X,))
    assert torch.equal(torch.get_rng_state(), state)


def stand_in(module: nn.Module, *inputs: Any) -> InPlace:
    """Return a function on arrays that calls the module."""

    def run(arrays: Any) -> Any:
        tensors = [
            torch.view_as_complex(torch.tensor(array)) if given.is_complex() else torch.tensor(array)
            for array, given in zip(arrays, torch.utils._pytree.tree_leaves(inputs), strict=True)
        ]
        structure = torch.utils._pytree.tree_structure(inputs)
        with torch.no_grad():
            results, _ = flatten(module(*torch.utils._pytree.tree_unflatten(tensors, structure)))
        found = [result for result in results if isinstance(result, torch.Tensor)]
        return [(torch.view_as_real(result) if result.is_complex() else result).numpy() for result in found]

    return InPlace(module, inputs, run)


RIGHT = {
    "complex results": (lambda _, x: torch.fft.rfft(x), (X,)),
    "complex inputs": (lambda _, z: z * z, (torch.complex(X, X),)),
    "a structure": (lambda _, x: {"b": Pair(x, None), "a": [x > 0, 3, "text"]}, (X,)),
    "nested inputs": (lambda _, given: given["a"] + given["b"], ({"a": X, "b": X},)),
    "nothing": (lambda _, x: x[:0], (X,)),
    "a number": (lambda _, x: x.sum(), (X,)),
    "a dataclass": (lambda _, x: Output((x * 2, Output(x + 1))), (X,)),
    "strides": (lambda _, x: x.T @ x, (X.T,)),
    "half": (lambda _, x: x * 3, (X.half(),)),
    "whole numbers": (lambda _, n: n // 3, (torch.arange(9),)),
}


@pytest.mark.parametrize("name", RIGHT)
def test_calls_in_place_of_a_module_are_as_calls_of_it(name):
    function, inputs = RIGHT[name]
    module = Function(function)
    refuse_unsteady(module, inputs)
    found = compare(module, inputs, stand_in(module, *inputs), 0)
    assert found.checked, found


def test_differences_are_noticed():
    module = nn.Sequential(nn.Linear(4, 4), nn.GELU())
    other = nn.Sequential(module[0], nn.GELU(approximate="tanh"))
    assert compare(module, (X,), stand_in(module, X), 0).checked
    found = compare(module, (X,), stand_in(other, X), 0)
    assert not found.ok and "instead of" in found.detail


def test_a_number_that_depends_on_values_is_noticed():
    module = Function(lambda _, x: (x * 2, x.sum().item()))
    found = compare(module, (X,), stand_in(module, X), 0)
    assert not found.ok


class Named(nn.Module):
    def forward(self, x: Any, y: Any, scale: float = 2.0) -> Any:
        return x * scale + y


def test_inputs_are_given_by_their_names_too():
    called = stand_in(Named(), X, X + 1)
    with torch.no_grad():
        assert torch.equal(called(X, y=X + 1), Named()(X, X + 1))
        assert torch.equal(called(y=X + 1, x=X), Named()(X, X + 1))
    with pytest.raises(IrgymError, match="was tuned for"):
        called(X, X, 3.0)
    with pytest.raises(IrgymError, match="does not take these inputs"):
        called(X, z=X)
    with pytest.raises(IrgymError, match="nested in another way"):
        called((X, X), X)


def test_an_input_that_is_given_twice_is_two_inputs():
    first, second = copied((X, X))
    assert first is not second and first.data_ptr() != second.data_ptr() and torch.equal(first, X)
