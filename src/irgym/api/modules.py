"""Torch modules as their users give them: nested and keyword inputs, several examples, exported programs."""

import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from inspect import isfunction
from os import PathLike
from typing import Any, cast

from irgym.base.errors import ProgramError

EXAMPLES = "example_inputs"
"""Keyword of example inputs: a tuple, a dict of keyword inputs, or a list of several of them."""

Example = tuple[Sequence[Any], Mapping[str, Any]]
"""Positional and keyword inputs of a call."""


def as_called(
    program: object, inputs: Sequence[Any], keywords: Mapping[str, Any]
) -> tuple[object, tuple[Any, ...]]:
    """Return a program and the inputs that environments take for it: for a module, its tensors alone.

    A module that is called with more than tensors by position becomes a `Called` module of them. Other
    programs are returned as they are.

    Args:
        program: As for `irgym.tune`.
        inputs: Positional inputs.
        keywords: Keyword inputs, or `example_inputs`.

    Raises:
        ProgramError: The module does not take these inputs, or the object is something else of torch.
        TypeError: There are keywords, and the program is no module.
    """
    torch = sys.modules.get("torch")
    named = isinstance(program, str | PathLike)
    if (
        torch is not None
        and not named
        and isinstance(program, torch.nn.Module | torch.export.ExportedProgram)
    ):
        return _called(program, inputs, keywords)
    if keywords:
        raise TypeError(
            f"irgym.tune has no argument {next(iter(keywords))!r}, and only torch modules take others"
        )
    if torch is not None and not named:
        _refuse_other_objects(torch, program, inputs)
    return cast(object, program), tuple(inputs)


def _called(
    program: Any, inputs: Sequence[Any], keywords: Mapping[str, Any]
) -> tuple[object, tuple[Any, ...]]:
    from irgym.measure.callables.torch_calls import Called, called, of_exported

    if isinstance(program, Called):
        return program, tuple(inputs)
    examples = _examples(program, inputs, keywords)
    if not isinstance(program, sys.modules["torch"].nn.Module):
        found = of_exported(program, examples)
        return found, tuple(found.examples[0])
    if not examples:
        return program, ()  # the environment says what it needs
    found = called(program, [_unpacked(program, *example) for example in examples])
    plain = len(examples) == 1 and not examples[0][1] and found.is_plain(examples[0][0])
    return (program, tuple(examples[0][0])) if plain else (found, tuple(found.examples[0]))


def _examples(program: object, inputs: Sequence[Any], keywords: Mapping[str, Any]) -> list[Example]:
    """Return the example inputs that a user gives."""
    if EXAMPLES not in keywords:
        return [(inputs, keywords)] if inputs or keywords else []
    if inputs or len(keywords) > 1:
        raise ProgramError(f"inputs are given twice: give them in order and by name, or as {EXAMPLES}")
    given = keywords[EXAMPLES]
    listed = cast(list[Any], given) if isinstance(given, list) else []
    several = bool(listed) and all(isinstance(example, tuple | Mapping) for example in listed)
    found = [_example(example) for example in (listed if several else [cast(Any, given)])]
    if not found:
        raise ProgramError(
            f"{EXAMPLES} is empty: give the inputs that {type(program).__name__} is called with"
        )
    return found


def _example(given: Any) -> Example:
    if isinstance(given, Mapping):
        return (), cast(Mapping[str, Any], given)
    return (cast(Sequence[Any], given) if isinstance(given, tuple | list) else (given,)), {}


def _unpacked(module: Any, inputs: Sequence[Any], keywords: Mapping[str, Any]) -> Example:
    """Return inputs; of one tuple or dict of tensors that the module does not take, its content."""
    torch = sys.modules["torch"]
    if keywords or len(inputs) != 1 or not isinstance(inputs[0], tuple | list | Mapping):
        return inputs, keywords
    args, named = _example(inputs[0])
    if not any(isinstance(value, torch.Tensor) for value in (*args, *named.values())):
        return inputs, keywords
    with ExitStack() as held:
        held.enter_context(torch.no_grad())
        held.enter_context(torch.random.fork_rng(devices=[]))
        from irgym.measure.callables.torch_comparison import copied

        try:
            module(*copied(inputs))
        except Exception:  # noqa: BLE001  # whatever a module raises on what it does not take
            return args, named
    return inputs, keywords


def _refuse_other_objects(torch: Any, program: object, inputs: Sequence[Any]) -> None:
    """Refuse objects of torch that are no modules, with what to give instead."""
    if isinstance(program, type) and issubclass(program, torch.nn.Module):
        raise ProgramError(f"{program.__name__} is a class: make a module of it, and give that")
    if isinstance(program, torch.Tensor):
        raise ProgramError("a tensor is no program: give the module first, then its inputs")
    values = cast(Mapping[str, Any], program).values() if isinstance(program, Mapping) else ()
    if any(isinstance(value, torch.Tensor) for value in values):
        raise ProgramError(
            "a dict of tensors is no program: load it into its module by load_state_dict, and give that"
        )
    if isfunction(found := cast(Any, program)) and any(isinstance(value, torch.Tensor) for value in inputs):
        raise ProgramError(
            f"{found.__name__} is a function of tensors: give a torch.nn.Module whose forward calls it"
        )
