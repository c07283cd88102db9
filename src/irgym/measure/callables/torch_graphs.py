"""Graphs that `torch.compile` hands to its back ends, as modules of tensors. Imported on use only."""

# Some of torch's types are incomplete.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from irgym.base.errors import ProgramError
from irgym.measure.callables.misfit import MisfitError
from irgym.measure.callables.torch_calls import Called, Convention
from irgym.measure.callables.torch_modules import InPlace

NAME = "the graph"
"""Name of a graph in messages."""


class Number:
    """A number that a graph takes as a tensor and reads by `item`."""

    def __init__(self, value: float) -> None:
        self._value = value

    def item(self) -> float:
        """Return the number."""
        return self._value


class Graph(nn.Module):
    """A graph of `torch.compile` with its weights and numbers inside, as a module of its other tensors.

    Sizes that the graph takes as numbers are read off the tensors.

    Attributes:
        graph: The graph.
        places: Places of the inputs among the graph's arguments.
        weights: Parameters and buffers by their places.
        numbers: Numbers by their places.
        open_axes: For each input the axes whose size stays open.
    """

    def __init__(self, graph: Any, given: Sequence[Any]) -> None:
        """Split the graph's arguments.

        Args:
            graph: A `torch.fx.GraphModule`.
            given: Its arguments: weights, sizes, numbers and inputs, in the graph's order.
        """
        super().__init__()
        self.graph = graph
        self.training = False
        self._count = len(given)
        read = _read_as_numbers(graph)
        self.numbers = {place: given[place].item() for place in read}
        self.places = [place for place, value in enumerate(given) if _is_input(value) and place not in read]
        self.weights = {place: value for place, value in enumerate(given) if _is_weight(value)}
        for place, weight in self.weights.items():
            if isinstance(weight, nn.Parameter) and not weight.is_inference():
                self.register_parameter(f"weight_{place}", weight)
            else:  # a copy: trials may write to it, and torch.export takes no inference tensors
                self.register_buffer(f"weight_{place}", weight.detach().clone())
        shapes = [_shape(node) for node in _placeholders(graph)]
        self.open_axes = [
            frozenset(axis for axis, size in enumerate(shapes[place]) if not isinstance(size, int))
            for place in self.places
        ]
        self._sizes: dict[int, tuple[int, int]] = {}
        for place, value in enumerate(given):
            if isinstance(value, Tensor):
                continue
            source = _source(value, [shapes[place] for place in self.places])
            if source is None:
                self.numbers[place] = concrete(value)
            else:
                self._sizes[place] = source

    def forward(self, *tensors: Tensor) -> tuple[Any, ...]:
        """Return the graph's results."""
        given: list[Any] = [None] * self._count
        for place, number in self.numbers.items():
            given[place] = Number(number) if isinstance(number, float) else number
        for place in self.weights:
            given[place] = getattr(self, f"weight_{place}")
        for place, tensor in zip(self.places, tensors, strict=True):
            given[place] = tensor
        for place, (index, axis) in self._sizes.items():
            given[place] = tensors[index].shape[axis]
        return tuple(self.graph.forward(*given))  # as a module it prints its exceptions


def called_graph(graph: Any, given: Sequence[Any]) -> Called:
    """Return a graph as a module of its inputs, with the sizes open that `torch.compile` left so.

    Raises:
        ProgramError: It has no input, or returns a size.
    """
    module = Graph(graph, given)
    inputs = [given[place].detach().clone() for place in module.places]
    if not inputs:
        raise ProgramError(f"{NAME} has no inputs beside its weights")
    if any(isinstance(value, torch.SymInt) for value in _results(graph)):
        raise ProgramError(f"{NAME} returns sizes of its inputs as numbers")
    names = [f"input_{place}" for place in range(len(inputs))]
    convention = Convention.in_order(NAME, names)
    return Called(module, convention, [inputs], module.open_axes)


class Compiled:
    """A tuned graph as `torch.compile` calls it: with weights, sizes and inputs.

    Weights and numbers are those of the time of tuning. Once one of them has changed, and where the tuned
    program cannot run, the graph itself runs, with one warning.

    Args:
        graph: The graph as `called_graph` returned it.
        tuned: The program in its place.
        warn: Called with the reason when the graph runs instead for the first time.
    """

    def __init__(self, graph: Called, tuned: InPlace, warn: Callable[[str], None]) -> None:
        assert isinstance(graph.module, Graph)
        self._graph = graph.module.graph
        self._places = graph.module.places
        self._weights = list(graph.module.weights.items())
        self._tokens = [_token(weight) for _, weight in self._weights]
        self._numbers = list(graph.module.numbers.items())
        self._tuned = tuned
        self._warn: Callable[[str], None] | None = warn

    def __call__(self, *given: Any) -> Sequence[Any]:
        """Return the graph's results."""
        if [_token(given[place]) for place, _ in self._weights] != self._tokens:
            return self._instead(given, "weights have changed: compile the module again")
        if any(given[place] != number for place, number in self._numbers):
            return self._instead(given, "a number that it takes has changed: give a tensor instead")
        try:
            return self._tuned.computed([given[place] for place in self._places])
        except MisfitError as error:
            return self._instead(given, str(error))

    def _instead(self, given: Sequence[Any], reason: str) -> Sequence[Any]:
        if self._warn is not None:
            self._warn(reason)
            self._warn = None
        return self._graph.forward(*given)


def needs_gradients(given: Sequence[Any]) -> bool:
    """Say whether results of a graph with these arguments would record gradients."""
    return torch.is_grad_enabled() and any(
        isinstance(value, Tensor) and value.requires_grad for value in given
    )


def concrete(value: Any) -> Any:
    """Return the number that a symbol stands for, without a guard that fixes it; other values as they are."""
    return value.node.hint if isinstance(value, torch.SymInt) else value


def _is_weight(value: Any) -> bool:
    """Say whether an argument is a parameter or buffer, which `torch.compile` marks."""
    return isinstance(value, nn.Parameter) or (
        isinstance(value, Tensor) and getattr(value, "_dynamo_static_input_type", None) is not None
    )


def _is_input(value: Any) -> bool:
    return isinstance(value, Tensor) and not _is_weight(value)


def _token(weight: Tensor) -> tuple[int, int]:
    """Return what changes when a weight is written to or replaced."""
    return weight.data_ptr(), -1 if weight.is_inference() else weight._version


def _placeholders(graph: Any) -> list[Any]:
    return [node for node in graph.graph.nodes if node.op == "placeholder"]


def _read_as_numbers(graph: Any) -> list[int]:
    """Return the places of the tensors that a graph takes for numbers of Python, such as an epsilon."""
    return [
        place
        for place, node in enumerate(_placeholders(graph))
        if getattr(node.meta.get("grapharg"), "pass_arg_as_tensor", False)
        and node.users
        and all(user.op == "call_method" and user.target == "item" for user in node.users)
    ]


def _shape(node: Any) -> Sequence[Any]:
    """Return the sizes of an argument in a graph; open ones are symbols."""
    value = node.meta.get("example_value")
    return tuple(map(_fixed, value.shape)) if isinstance(value, Tensor) else ()


def _fixed(size: Any) -> Any:
    """Return a size as a number, if the graph is for that size alone."""
    known = size.node.maybe_as_int() if isinstance(size, torch.SymInt) else size
    return size if known is None else known


def _results(graph: Any) -> Sequence[Any]:
    """Return the example values of a graph's results."""
    [output] = [node for node in graph.graph.nodes if node.op == "output"]
    return [node.meta.get("example_value") for node in output.all_input_nodes]


def _source(number: Any, shapes: Sequence[Sequence[Any]]) -> tuple[int, int] | None:
    """Return the tensor and the axis whose size is a number that a graph takes; None where it is no size."""
    wanted = _expression(number)
    for index, shape in enumerate(shapes):
        for axis, size in enumerate(shape):
            if not isinstance(size, int) and _expression(size) == wanted:
                return index, axis
    return None


def _expression(size: Any) -> Any:
    return size.node.expr if isinstance(size, torch.SymInt) else size
