"""The description of an exported program: its operators, names and sizes, without what torch would run."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from irgym.measure.pt2.refusal import Refused
from irgym.measure.pt2.text import checked_expression, checked_name, checked_text, checked_tree

OPERATOR = re.compile(r"torch\.ops\.(aten|prims|quantized_decomposed)\.(\w+)\.(\w+)")
"""Operators of torch's dispatcher, with their overloads."""

FILES = frozenset({"from_file", "save"})
"""Those that read or write files."""

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
"""What else programs may call."""

FREE = frozenset({"as_string", "as_strings"})
"""Fields with texts that are arguments of operators: torch writes them into source with quotes around."""

EMPTIED: Mapping[str, Callable[[], Any]] = {
    "metadata": dict,
    "guards_code": list,
    "treespec_namedtuple_fields": dict,
}
"""Fields that programs do not need, and that torch compiles or looks names up for."""

OBJECTS = frozenset({"as_custom_obj", "custom_obj"})
"""Fields with objects of classes that the file brings along."""


def checked_program(model: Any) -> Any:
    """Return what a description holds of operators of torch, of sizes and of names.

    Raises:
        Refused: It holds anything else.
    """
    try:
        return _checked(model, "")
    except RecursionError:
        raise Refused("describes a program that is nested too deeply") from None


def _checked(value: Any, field: str) -> Any:
    """Return a part of a description.

    Args:
        value: The part.
        field: The name of the field that it is in; of a list, that of the list.
    """
    if field in EMPTIED:
        return EMPTIED[field]()
    if isinstance(value, str):
        return _CHECKS.get(field, checked_text)(value)
    if isinstance(value, list):
        items = cast(Sequence[Any], value)
        if field == "module_call_graph":
            items = [item for item in items if item["fqn"] == ""]  # others are of parts of the module
        return [_checked(item, field) for item in items]
    if isinstance(value, dict):
        entries = cast(Mapping[str, Any], value)
        if OBJECTS.intersection(entries) or entries.get("custom_obj_values"):
            raise Refused("holds objects of Python or C++, and only tensors and numbers are loaded")
        return {checked_text(name): _checked(part, name) for name, part in entries.items()}
    return value


def checked_operator(target: str) -> str:
    """Return the name of an operator that programs may call.

    Raises:
        Refused: They may not.
    """
    found = OPERATOR.fullmatch(target)
    if target in CALLED or (found and found[2] not in FILES and _is_registered(*found.groups())):
        return target
    raise Refused(f"calls {target!r}, which is no operator of torch's that files may call")


def _is_registered(namespace: str, name: str, overload: str) -> bool:
    """Say whether torch's dispatcher has an operator: TorchScript has others, such as those on files."""
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
"""How texts are checked, by the field that they are in; others must be plain."""
