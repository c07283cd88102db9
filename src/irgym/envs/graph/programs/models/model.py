"""Models that builders return, and weights that hide no errors of rewrites."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import log2, sqrt
from typing import TypeAlias

import torch
from torch import Tensor, nn

Options: TypeAlias = Mapping[str, int]
"""A family's options and their values."""


@dataclass(frozen=True)
class Model:
    """A model that can be exported.

    Attributes:
        module: A module in evaluation mode that returns one tensor.
        inputs: An example of each input, by name, in the order of the module's parameters.
        ranges: The half-open range of each integer input.
    """

    module: nn.Module
    inputs: Mapping[str, Tensor]
    ranges: Mapping[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])


Builder: TypeAlias = Callable[[Options], Model]
"""Makes the model of a family from its options; weights are drawn from torch's generator."""


def tokens(options: Options) -> Tensor:
    """Return token numbers; shape (batch, sequence)."""
    return torch.randint(options["vocabulary"], (options["batch"], options["sequence"]))


def images(options: Options) -> Tensor:
    """Return images; shape (batch, 3, size, size)."""
    return torch.randn(options["batch"], 3, options["size"], options["size"])


def enliven(model: Model) -> None:
    """Give random values to all parameters that start as zeros or ones and that training would change.

    These are gains, shifts and statistics of norms, biases, and class tokens. With their first values, a
    wrong rewrite could drop them without changing the results.

    The variance of a batch norm is set close to the variance of its operand for the model's inputs, as after
    training. Otherwise values would grow from block to block until rounding errors dominate. It is based on a
    power of two, so that the results do not depend on how a machine rounds.
    """
    module = model.module
    with torch.no_grad():
        for value in module.parameters():
            if bool((value == 0).all()):
                value.normal_(0, 0.1)
            elif bool((value == 1).all()):
                value.uniform_(0.5, 1.5)
        for part in module.modules():
            if isinstance(part, nn.Conv1d | nn.Conv2d | nn.ConvTranspose2d):
                nn.init.kaiming_normal_(part.weight, nonlinearity="relu")
        norms = [part for part in module.modules() if isinstance(part, nn.BatchNorm2d)]
        hooks = [norm.register_forward_pre_hook(_fill_statistics) for norm in norms]
        if hooks:
            module(*model.inputs.values())
        for hook in hooks:
            hook.remove()


def _fill_statistics(norm: nn.Module, arguments: tuple[Tensor]) -> None:
    """Give a batch norm random statistics close to those of its argument."""
    assert isinstance(norm, nn.BatchNorm2d)
    assert norm.running_mean is not None and norm.running_var is not None
    variance = 2.0 ** round(log2(max(float(arguments[0].double().var(correction=0)), 1e-6)))
    norm.running_mean.normal_(0, 0.2 * sqrt(variance))
    norm.running_var.uniform_(0.5 * variance, 1.5 * variance)
