"""Checks of texts in a file of torch.export, many of which torch writes into source that it compiles."""

import ast
import json
import re
from collections.abc import Sequence
from typing import Any, cast

from irgym.base.values import parse_json
from irgym.measure.pt2.refusal import Refused

_TEXT = re.compile(r"[\w .:/+\-\[\]]*")
_NAME = re.compile(r"(?:[A-Za-z_]\w*)?")
_SYMBOL = re.compile(r"(?:s|u|f|z|zf|zu|zuf)\d+|oo|int_oo|nan|true|false")

_LONGEST = 10_000
"""Greatest length of an expression in characters."""

_CONTAINERS = frozenset(
    {
        "builtins.tuple",
        "builtins.list",
        "builtins.dict",
        "collections.OrderedDict",
        "torch.fx.immutable_collections.immutable_list",
        "torch.fx.immutable_collections.immutable_dict",
    }
)
"""Allowed containers of inputs and results; for others, torch would import modules."""

_FUNCTIONS = frozenset(
    {
        *("Abs", "Add", "And", "CeilDiv", "CeilToInt", "CleanDiv", "Equality", "ExprCondPair", "FloatPow"),
        *("FloatTrueDiv", "FloorDiv", "FloorToInt", "GreaterThan", "Identity", "IntTrueDiv", "Integer"),
        *("IsNonOverlappingAndDenseIndicator", "LShift", "LessThan", "Max", "Min", "Mod", "ModularIndexing"),
        *("Mul", "Not", "Or", "Piecewise", "Pow", "PowByNatural", "PythonMod", "RShift", "Rational"),
        *("RoundDecimal", "RoundToInt", "StrictGreaterThan", "StrictLessThan", "ToFloat", "TruncToFloat"),
        *("TruncToInt", "Unequality", "Where", "ceiling", "floor"),
    }
)
"""Functions of sympy and torch in expressions of sizes."""

_OPERATIONS = (ast.operator, ast.unaryop, ast.cmpop, ast.Load, ast.Expression)


def checked_text(text: str) -> str:
    """Return a text after checking that it has no quotes or parentheses, which could end a string in source.

    Raises:
        Refused: It has other characters.
    """
    if not _TEXT.fullmatch(text):
        raise Refused(f"has a name that is none ({_shown(text)})")
    return text


def checked_name(text: str) -> str:
    """Return a text after checking that it is empty or an identifier.

    Raises:
        Refused: It is neither.
    """
    if not _NAME.fullmatch(text):
        raise Refused(f"has a name that is no identifier ({_shown(text)})")
    return text


def checked_expression(text: str) -> str:
    """Return an expression of a size after checking that it has only symbols, numbers and known functions.

    Raises:
        Refused: It has anything else.
    """
    try:
        tree = ast.parse(text if len(text) <= _LONGEST else "", mode="eval")
        known = _is_known(tree)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        known = False
    if not known:
        raise Refused(f"has a size that is no expression of sizes ({_shown(text)})")
    return text


def _is_known(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        return _is_known_call(node)
    if isinstance(node, ast.Name):
        return bool(_SYMBOL.fullmatch(node.id))
    if isinstance(node, ast.Constant):
        return type(node.value) in (int, float, bool)
    operations = isinstance(node, (ast.BinOp, ast.UnaryOp, ast.Compare, *_OPERATIONS))
    return operations and all(map(_is_known, ast.iter_child_nodes(node)))


def _is_known_call(call: ast.Call) -> bool:
    """Say whether a call is of an allowed function; `Symbol` and `Float` may take a text."""
    if not isinstance(call.func, ast.Name):
        return False
    if call.func.id in ("Symbol", "Float"):
        first, *others = call.args or [ast.Constant("")]
        texts = isinstance(first, ast.Constant) and re.fullmatch(r"[\w.+\-]+", str(first.value))
        values = [*others, *(keyword.value for keyword in call.keywords)]
        plain = all(isinstance(value, ast.Constant) and _is_known(value) for value in values)
        return bool(texts) and plain
    return call.func.id in _FUNCTIONS and not call.keywords and all(map(_is_known, call.args))


def checked_tree(text: str) -> str:
    """Return the checked description of the containers of inputs or results, as of `treespec_dumps`.

    Raises:
        Refused: There are containers other than tuples, lists and dictionaries with plain keys.
    """
    if not text:
        return text
    try:
        tree: Any = parse_json(text)
    except ValueError as error:
        raise Refused("has containers that are no JSON") from error
    if not isinstance(tree, list) or len(cast(Sequence[Any], tree)) != 2:
        raise Refused("has containers of another version of torch")
    try:
        _check_container(cast(Sequence[Any], tree)[1])
    except RecursionError:
        raise Refused("has containers that are nested too deeply") from None
    return json.dumps(tree)


def _check_container(tree: Any) -> None:
    kind, context, children = (tree.get(key) for key in ("type", "context", "children_spec"))
    if kind is not None and kind not in _CONTAINERS:
        raise Refused(f"takes or returns a container of the type {_shown(kind)}: use tuples or dictionaries")
    keys: Any = [] if context is None else parse_json(context)
    for key in cast(Sequence[Any], keys if isinstance(keys, list) else [keys]):
        if isinstance(key, str):
            checked_text(key)
        elif not isinstance(key, int | float | None):
            raise Refused(f"takes or returns a dictionary with the key {_shown(key)}: use texts as keys")
    for child in cast(Sequence[Any], children):
        _check_container(child)


def _shown(text: Any) -> str:
    shown = repr(text)
    return shown if len(shown) <= 60 else f"{shown[:57]}..."
