"""Graphs that `torch.compile` hands to its back ends, as modules of tensors. Imported on use only."""

# Some of torch's types are incomplete.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from irgym.base.errors import ProgramError
from irgym.measure.callables.misfit import MisfitError
from irgym.measure.callables.torch_calls import Called, Convention
from irgym.measure.callables.torch_fused import unfused
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


@dataclass(frozen=True)
class Size:
    """A number that a graph returns: an expression of sizes of its inputs.

    Attributes:
        expression: The expression, of sympy.
        sources: The input and its axis whose size a symbol stands for, by symbol.
    """

    expression: Any
    sources: Mapping[Any, tuple[int, int]]

    def of(self, tensors: Sequence[Tensor]) -> int:
        """Return the number for some inputs."""
        sizes = {symbol: tensors[index].shape[axis] for symbol, (index, axis) in self.sources.items()}
        return sizes[self.expression] if self.expression in sizes else int(self.expression.subs(sizes))


class Graph(nn.Module):
    """A graph of `torch.compile` with its weights and numbers inside, as a module of its other tensors.

    Sizes that the graph takes as numbers are read off the tensors. Sizes that it returns are left out.

    Attributes:
        graph: The graph, with plain operators.
        sizes: Sizes that it returns as numbers, by their places among its results.
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

        Raises:
            ProgramError: It returns numbers that are no sizes of its inputs.
        """
        super().__init__()
        self.graph = unfused(graph)
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
        sources = _sources([shapes[place] for place in self.places])
        self._read: dict[int, tuple[int, int]] = {}
        for place, value in enumerate(given):
            if isinstance(value, Tensor):
                continue
            if (size := _expression(value)) in sources:
                self._read[place] = sources[size]
            else:
                self.numbers[place] = concrete(value)
        self.sizes = _returned_sizes(graph, sources)

    def forward(self, *tensors: Tensor) -> tuple[Any, ...]:
        """Return the graph's results."""
        given: list[Any] = [None] * self._count
        for place, number in self.numbers.items():
            given[place] = Number(number) if isinstance(number, float) else number
        for place in self.weights:
            given[place] = getattr(self, f"weight_{place}")
        for place, tensor in zip(self.places, tensors, strict=True):
            given[place] = tensor
        for place, (index, axis) in self._read.items():
            given[place] = tensors[index].shape[axis]
        results = self.graph.forward(*given)  # as a module it prints its exceptions
        return tuple(result for place, result in enumerate(results) if place not in self.sizes)


def called_graph(graph: Any, given: Sequence[Any]) -> Called:
    """Return a graph as a module of its inputs, with the sizes open that `torch.compile` left so.

    Raises:
        ProgramError: It has no input, or returns numbers that are no sizes of its inputs.
    """
    module = Graph(graph, given)
    inputs = [given[place].detach().clone() for place in module.places]
    if not inputs:
        raise ProgramError(f"{NAME} has no inputs beside its weights")
    names = [f"input_{place}" for place in range(len(inputs))]
    convention = Convention.in_order(NAME, names)
    return Called(module, convention, [inputs], module.open_axes)


class Compiled:
    """A tuned graph as `torch.compile` calls it: with weights, sizes and inputs.

    Weights and numbers are those of the time of tuning. Once one of them has changed, and where the tuned
    program cannot run, the graph itself runs, with one warning.

    Args:
        graph: The graph.
        called: What `called_graph` made of it.
        tuned: The program in its place.
        warn: Called with the reason when the graph runs instead for the first time.
    """

    def __init__(self, graph: Any, called: Called, tuned: InPlace, warn: Callable[[str], None]) -> None:
        assert isinstance(called.module, Graph)
        self._graph = graph
        self._places = called.module.places
        self._weights = list(called.module.weights.items())
        self._tokens = [_token(weight) for _, weight in self._weights]
        self._numbers = list(called.module.numbers.items())
        self._sizes = sorted(called.module.sizes.items())
        self._tuned = tuned
        self._warn: Callable[[str], None] | None = warn

    def __call__(self, *given: Any) -> Sequence[Any]:
        """Return the graph's results."""
        if [_token(given[place]) for place, _ in self._weights] != self._tokens:
            return self._instead(given, "weights have changed: compile the module again")
        if any(given[place] != number for place, number in self._numbers):
            return self._instead(given, "a number that it takes has changed: give a tensor instead")
        inputs = [given[place] for place in self._places]
        try:
            results = self._tuned.computed(inputs)
        except MisfitError as error:
            return self._instead(given, str(error))
        for place, size in self._sizes:
            results.insert(place, size.of(inputs))
        return results

    def _instead(self, given: Sequence[Any], reason: str) -> Sequence[Any]:
        if self._warn is not None:
            self._warn(reason)
            self._warn = None
        return self._graph.forward(*given)


def refuse_modes(given: Sequence[Any]) -> None:
    """Refuse a graph with these arguments under modes of this thread that tuned programs do not keep.

    Raises:
        ProgramError: Its results would record gradients, or autocast is on.
    """
    if torch.is_grad_enabled() and any(isinstance(value, Tensor) and value.requires_grad for value in given):
        raise ProgramError("it records gradients: call it under torch.inference_mode() or torch.no_grad()")
    if torch.is_autocast_enabled("cpu"):
        raise ProgramError("it computes in short floats under torch.autocast: call it without")


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


def _returned_sizes(graph: Any, sources: Mapping[Any, tuple[int, int]]) -> dict[int, Size]:
    """Return the open sizes among a graph's results, by their places.

    Raises:
        ProgramError: A result is another number.
    """
    [output] = [node for node in graph.graph.nodes if node.op == "output"]
    found: dict[int, Size] = {}
    for place, node in enumerate(output.args[0]):
        value = _fixed(node.meta.get("example_value")) if isinstance(node, torch.fx.Node) else None
        if isinstance(value, torch.SymInt):
            expression = _expression(value)
            if not expression.free_symbols <= sources.keys():
                raise ProgramError(f"{NAME} returns a number that is no size of its inputs")
            found[place] = Size(expression, {symbol: sources[symbol] for symbol in expression.free_symbols})
    return found


def _sources(shapes: Sequence[Sequence[Any]]) -> dict[Any, tuple[int, int]]:
    """Return the first input and axis of each open size, by its expression."""
    found: dict[Any, tuple[int, int]] = {}
    for index, shape in enumerate(shapes):
        for axis, size in enumerate(shape):
            if not isinstance(size, int):
                found.setdefault(_expression(size), (index, axis))
    return found


def _expression(size: Any) -> Any:
    return size.node.expr if isinstance(size, torch.SymInt) else size
