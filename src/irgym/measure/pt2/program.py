"""The description of an exported program: its operators, names and sizes, without executable code."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from irgym.measure.pt2.refusal import Refused
from irgym.measure.pt2.text import checked_expression, checked_name, checked_text, checked_tree

OPERATOR = re.compile(r"torch\.ops\.(aten|prims|quantized_decomposed)\.(\w+)\.(\w+)")
"""Operators of torch's dispatcher, with their overloads."""

FILES = frozenset({"from_file", "save"})
"""Operators that read or write files."""

_HIGHER_ORDER = (
    *("associative_scan", "cond", "invoke_subgraph", "map_impl", "scan", "strict_mode", "while_loop"),
    *("wrap_with_autocast", "wrap_with_set_grad_enabled"),
)

_PYTHON = (
    *(
        "add",
        "and_",
        "eq",
        "floordiv",
        "ge",
        "getitem",
        "gt",
        "le",
        "lshift",
        "lt",
        "mod",
        "mul",
        "ne",
        "neg",
    ),
    *("or_", "pos", "pow", "rshift", "sub", "truediv"),
)

_SYMBOLIC = ("float", "int", "ite", "max", "min", "not", "sqrt", "sum")

CALLED = frozenset(
    {
        *(f"torch.ops.higher_order.{name}" for name in _HIGHER_ORDER),
        *(f"_operator.{name}" for name in _PYTHON),
        *(f"math.{name}" for name in ("ceil", "floor", "sqrt", "trunc")),
        *(f"torch.sym_{name}" for name in _SYMBOLIC),
    }
)
"""Functions that programs may call in addition to operators."""

FREE = frozenset({"as_string", "as_strings"})
"""Fields of text arguments of operators, which torch writes into source as quoted strings."""

EMPTIED: Mapping[str, Callable[[], Any]] = {
    "metadata": dict,
    "guards_code": list,
    "treespec_namedtuple_fields": dict,
}
"""Fields that programs do not need, and that torch compiles or resolves names in."""

OBJECTS = frozenset({"as_custom_obj", "custom_obj"})
"""Fields with objects of classes that the file defines."""


def checked_program(model: Any) -> Any:
    """Return a description after checking that it holds only operators of torch, sizes and names.

    Raises:
        Refused: It holds anything else.
    """
    try:
        return _checked(model, "")
    except RecursionError:
        raise Refused("describes a program that is nested too deeply") from None


def _checked(value: Any, field: str) -> Any:
    """Return a checked part of a description.

    Args:
        value: The part.
        field: Name of the field that holds it, or that holds the list that it is in.
    """
    if field in EMPTIED:
        return EMPTIED[field]()
    if isinstance(value, str):
        return _CHECKS.get(field, checked_text)(value)
    if isinstance(value, list):
        items = cast(Sequence[Any], value)
        if field == "module_call_graph":
            items = [item for item in items if item["fqn"] == ""]  # without those of submodules
        return [_checked(item, field) for item in items]
    if isinstance(value, dict):
        entries = cast(Mapping[str, Any], value)
        if OBJECTS.intersection(entries) or entries.get("custom_obj_values"):
            raise Refused("holds objects of Python or C++, and only tensors and numbers are loaded")
        return {checked_text(name): _checked(part, name) for name, part in entries.items()}
    return value


def checked_operator(target: str) -> str:
    """Return the name of an operator after checking that programs may call it.

    Raises:
        Refused: They may not call it.
    """
    found = OPERATOR.fullmatch(target)
    if target in CALLED or (found and found[2] not in FILES and _is_registered(*found.groups())):
        return target
    raise Refused(f"calls {target!r}, which is no operator of torch's that files may call")


def _is_registered(namespace: str, name: str, overload: str) -> bool:
    """Say whether torch's dispatcher has an operator; TorchScript has more, such as operators on files."""
    import torch

    whole = f"{namespace}::{name}" + ("" if overload == "default" else f".{overload}")
    known: Sequence[str] = torch._C._dispatch_get_all_op_names()  # pyright: ignore[reportPrivateUsage]
    return whole in known


def _free(text: str) -> str:
    return text


_CHECKS: Mapping[str, Callable[[str], str]] = {
    "name": checked_name,
    "as_name": checked_name,
    "forward_arg_names": checked_name,
    "target": checked_operator,
    "as_operator": checked_operator,
    "expr_str": checked_expression,
    "in_spec": checked_tree,
    "out_spec": checked_tree,
    **dict.fromkeys(FREE, _free),
}
"""Checks of texts, by their field; texts in other fields must be plain."""
