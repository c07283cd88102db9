"""How a torch module is called: nesting, names and constants of its inputs. Imported on use only."""

# Some of torch's types are incomplete.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import torch
from torch import Tensor, nn

from irgym.base.errors import ProgramError
from irgym.measure.callables.misfit import MisfitError
from irgym.measure.callables.nesting import Structure, flatten, flatten_with_paths

CONSTANTS = (bool, int, float, complex, str, torch.dtype, torch.device, type(None))
"""Types of inputs that stay as they were when the module was tuned."""


class Place(Enum):
    """Stand-in for a tensor among the leaves of inputs."""

    TENSOR = "tensor"


@dataclass(frozen=True)
class Convention:
    """How a module is called.

    Attributes:
        name: The module's name.
        signature: Parameters of its `forward`, without their types; None where Python cannot tell them.
        structure: Nesting of its positional and keyword inputs.
        leaves: `Place.TENSOR`, or the constant in its place.
    """

    name: str
    signature: inspect.Signature | None
    structure: Structure
    leaves: tuple[Any, ...]

    @classmethod
    def of(cls, module: nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any]) -> "Convention":
        """Return how a module is called with example inputs.

        Raises:
            ProgramError: It does not take them, or one is neither a tensor nor a plain value.
        """
        name, signature = name_of(module), _signature(module)
        try:
            given = _in_order(signature, args, kwargs)
        except TypeError as error:
            raise ProgramError(
                f"{name} does not take these inputs ({error}): give those that it takes"
            ) from error
        for words, leaf in _named(signature, given):
            if not isinstance(leaf, (Tensor, *CONSTANTS)):
                raise ProgramError(f"the input {words!r} of {name} is {_article(leaf)}: {_remedy(leaf)}")
        leaves, structure = flatten(given)
        kept = tuple(Place.TENSOR if isinstance(leaf, Tensor) else leaf for leaf in leaves)
        return cls(name, signature, structure, kept)

    @classmethod
    def in_order(cls, name: str, names: Sequence[str]) -> "Convention":
        """Return how a module is called that takes tensors of these names by position."""
        kind = inspect.Parameter.POSITIONAL_ONLY
        signature = inspect.Signature([inspect.Parameter(parameter, kind) for parameter in names])
        _, structure = flatten(((0,) * len(names), {}))
        return cls(name, signature, structure, (Place.TENSOR,) * len(names))

    def tensors(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Tensor]:
        """Return the tensors among inputs, in order.

        Raises:
            MisfitError: Their number, nesting or constants differ from the example's.
        """
        try:
            leaves, structure = flatten(_in_order(self.signature, args, kwargs))
        except TypeError as error:
            raise MisfitError(
                f"{self.name} does not take these inputs ({error}): call it as the module"
            ) from error
        if structure != self.structure:
            raise MisfitError(
                f"{self.name} was tuned for inputs that are nested in another way: give them as they were"
            )
        for leaf, known in zip(leaves, self.leaves, strict=True):
            if known is Place.TENSOR:
                if not isinstance(leaf, Tensor):
                    raise MisfitError(
                        f"{self.name} was tuned for a tensor where {leaf!r} is given: give a tensor"
                    )
            elif isinstance(leaf, Tensor) or type(leaf) is not type(known) or leaf != known:
                shown = "a tensor" if isinstance(leaf, Tensor) else repr(leaf)
                raise MisfitError(
                    f"{self.name} was tuned for the input {known!r}, not for {shown}: tune it for that"
                )
        return [leaf for leaf in leaves if isinstance(leaf, Tensor)]

    def inputs(self, tensors: Sequence[Tensor]) -> tuple[Sequence[Any], Mapping[str, Any]]:
        """Return the positional and the keyword inputs with these tensors."""
        given = iter(tensors)
        leaves = [next(given) if leaf is Place.TENSOR else leaf for leaf in self.leaves]
        args, kwargs = self.structure.filled(leaves)
        return args, kwargs

    @property
    def names(self) -> list[str]:
        """Names of the tensors, as in `state_0`, each another."""
        marked = self.structure.filled(range(len(self.leaves)))
        words = [
            words for words, place in _named(self.signature, marked) if self.leaves[place] is Place.TENSOR
        ]
        names: list[str] = []
        for word in words:
            plain = re.sub(r"\W+", "_", word).strip("_") or "input"
            names.append(plain if plain not in names else f"{plain}_{len(names)}")
        return names


class Called(nn.Module):
    """A module whose inputs are the tensors among those that it is called with.

    Attributes:
        module: The module.
        convention: How it is called.
        examples: Tensors of each example, the first of which is measured.
        open_axes: For each input the axes whose size stays open.
    """

    def __init__(
        self,
        module: nn.Module,
        convention: Convention,
        examples: Sequence[Sequence[Tensor]],
        open_axes: Sequence[frozenset[int]],
    ) -> None:
        super().__init__()
        self.module = module
        self.convention = convention
        self.examples = examples
        self.open_axes = open_axes
        self.training = module.training  # exported programs have no train()

    def forward(self, *tensors: Tensor) -> Any:
        """Return the module's results."""
        args, kwargs = self.convention.inputs(tensors)
        return self.module(*args, **kwargs)

    @property
    def example(self) -> tuple[Sequence[Any], Mapping[str, Any]]:
        """The first example, as its user gives it."""
        return self.convention.inputs(self.examples[0])

    def is_plain(self, inputs: Sequence[Any]) -> bool:
        """Say whether these inputs are all that the module is called with, and tensors only."""
        return all(isinstance(value, Tensor) for value in inputs)

    @property
    def more(self) -> Sequence[Sequence[Tensor]]:
        """The other examples."""
        return self.examples[1:]


def called(module: nn.Module, examples: Sequence[tuple[Sequence[Any], Mapping[str, Any]]]) -> Called:
    """Return a module as it is called in examples. Sizes that differ between the examples stay open.

    Raises:
        ProgramError: It does not take the inputs, they contain no tensors, or examples differ in more than
            sizes.
    """
    (args, kwargs), *others = examples
    convention = Convention.of(module, args, kwargs)
    name = convention.name
    first = convention.tensors(args, kwargs)
    if not first:
        raise ProgramError(f"no input of {name} is a tensor: give those that it is called with")
    tensors = [first]
    for place, (more_args, more_kwargs) in enumerate(others, 1):
        try:
            found = convention.tensors(more_args, more_kwargs)
        except MisfitError as error:
            raise ProgramError(
                f"example {place + 1} differs from the first in more than sizes ({error})"
            ) from error
        for tensor, other, word in zip(first, found, convention.names, strict=True):
            if tensor.dtype != other.dtype or tensor.dim() != other.dim():
                raise ProgramError(
                    f"the input {word!r} of {name} has another type or rank in example {place + 1}: "
                    "give examples of one type and rank"
                )
        tensors.append(found)
    return Called(module, convention, tensors, [_varying(column) for column in zip(*tensors, strict=True)])


def _varying(tensors: Sequence[Tensor]) -> frozenset[int]:
    """Return the axes along which tensors of one rank differ in size."""
    sizes = [tensor.shape for tensor in tensors]
    return frozenset(axis for axis, known in enumerate(zip(*sizes, strict=True)) if len(set(known)) > 1)


def of_exported(program: Any, examples: Sequence[tuple[Sequence[Any], Mapping[str, Any]]]) -> Called:
    """Return a program of torch.export as it is called. Sizes that it leaves open stay so.

    Args:
        program: A `torch.export.ExportedProgram`.
        examples: Its inputs; those that it was exported with if empty.

    Raises:
        ProgramError: It has no inputs, or does not take these.
    """
    held = program.example_inputs
    if not examples and not (held and (held[0] or held[1])):
        raise ProgramError("the exported program has no example inputs: give those that it is called with")
    found = called(program.module(), examples or [held])
    found.convention = replace(found.convention, name=type(program).__name__)
    names = [spec.arg.name for spec in program.graph_signature.input_specs if spec.kind.name == "USER_INPUT"]
    values = {node.name: node.meta.get("val") for node in program.graph.nodes if node.op == "placeholder"}
    shapes = [values[name].shape for name in names if isinstance(values.get(name), Tensor)]
    found.open_axes = [
        frozenset(axis for axis, size in enumerate(shape) if not isinstance(size, int)) for shape in shapes
    ]
    return found


def name_of(module: nn.Module) -> str:
    """Return the name of a module's class; that of the module within, if it is called in a certain way."""
    return module.convention.name if isinstance(module, Called) else type(module).__name__


def _signature(module: nn.Module) -> inspect.Signature | None:
    """Return the parameters of a module's `forward`, without types."""
    try:
        found = inspect.signature(module.forward)
    except (TypeError, ValueError):  # as for modules of torch.jit
        return None
    bare = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in found.parameters.values()]
    return found.replace(parameters=bare, return_annotation=inspect.Signature.empty)


def _in_order(
    signature: inspect.Signature | None, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return inputs by position as far as possible, with the defaults of those that are left out.

    Raises:
        TypeError: The module does not take them.
    """
    if signature is None:
        return tuple(args), dict(kwargs)
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    return bound.args, bound.kwargs


def _named(signature: inspect.Signature | None, given: Any) -> Iterator[tuple[str, Any]]:
    """Yield the leaves of inputs, each with its name as in Python: `state[0]`."""
    parameters = list(signature.parameters.values()) if signature else []
    kinds = [parameter.kind for parameter in parameters]
    ordered = kinds.count(inspect.Parameter.POSITIONAL_ONLY)
    ordered += kinds.count(inspect.Parameter.POSITIONAL_OR_KEYWORD)
    for (_, key, *rest), leaf in flatten_with_paths(given):
        place = getattr(key, "idx", None)
        if place is None:
            first = str(getattr(key, "key", key))
        elif place < ordered:
            first = parameters[place].name
        else:
            variable = parameters[ordered].name if parameters else "inputs"
            first = f"{variable}[{place - ordered}]"
        yield first + "".join(map(str, rest)), leaf


def _article(leaf: Any) -> str:
    kind = type(leaf)
    name = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
    return f"an {name}" if name[0] in "aeiou" else f"a {name}"


def _remedy(leaf: Any) -> str:
    """Return what a user can do about an input that is no tensor."""
    if type(leaf).__module__ == "numpy":
        return "give torch.from_numpy(...) of it"
    return "give tensors and plain values, in tuples, lists, dicts or dataclasses"
