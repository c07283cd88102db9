"""The language of rules: what operators to look for, when, and what to put in their place.

What to look for is written as Python that is parsed, never run:

- `y = Relu(c := Conv(x, w, [b]))` is a Relu of a Conv, which is called c. `[b]` is an operand that may be left
  out; `*xs` are all the operands that are left.
- `group=1` demands an attribute's value, or its default where it is left out; `axis=k` gives it a name.
- `a, b = Split(x, sizes)` makes two values, `*parts = Split(x, sizes)` any number; `_` is an output that is
  left out.
- `1.0` as an operand is a weight of one element with that value.
- `DOMAINS` says what operators of other domains than ONNX's own belong to.
"""

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

MICROSOFT = "com.microsoft"
NCHWC = "com.microsoft.nchwc"

ABSENT = "_"
"""The name of outputs that are left out."""

DOMAINS: Mapping[str, str] = {
    "Attention": MICROSOFT,
    "BiasGelu": MICROSOFT,
    "FastGelu": MICROSOFT,
    "FusedConv": MICROSOFT,
    "FusedGemm": MICROSOFT,
    "FusedMatMul": MICROSOFT,
    "MultiHeadAttention": MICROSOFT,
    "QuickGelu": MICROSOFT,
    "SkipLayerNormalization": MICROSOFT,
    "SkipSimplifiedLayerNormalization": MICROSOFT,
    "MicrosoftGelu": MICROSOFT,
    "BlockedAveragePool": NCHWC,
    "BlockedConv": NCHWC,
    "BlockedGlobalAveragePool": NCHWC,
    "BlockedMaxPool": NCHWC,
    "ReorderInput": NCHWC,
    "ReorderOutput": NCHWC,
}
"""Domains of operators that are not ONNX's own."""

PREFIXES = ("Blocked", "Microsoft", "Standard")
"""What is no part of an operator's name, but tells it from another: nchwc's, Microsoft's or ONNX's own."""

COMMUTATIVE = frozenset({"Add", "Mul", "And", "Or", "Max", "Min", "Equal"})
"""Operators whose two operands may be exchanged."""


@dataclass(frozen=True)
class Any_:
    """Any value.

    Attributes:
        name: What it is called.
        optional: Whether it may be left out.
        rest: Whether it is all the operands that are left.
    """

    name: str
    optional: bool = False
    rest: bool = False


@dataclass(frozen=True)
class Number:
    """A weight of one element.

    Attributes:
        value: Its value; whole where it stands for an index.
    """

    value: int | float


@dataclass(frozen=True)
class Operator:
    """A node.

    Attributes:
        operator: Its operator, with its domain.
        operands: What its operands are.
        attributes: Pairs of name and value, or the name that a value is given.
        name: What the node is called; empty for nothing.
    """

    operator: str
    operands: tuple["Term", ...]
    attributes: tuple[tuple[str, "Value"], ...]
    name: str = ""

    @property
    def commutative(self) -> bool:
        """Whether its operands may be exchanged."""
        return self.operator in COMMUTATIVE and len(self.operands) == 2


@dataclass(frozen=True)
class Named:
    """A name for the value of an attribute."""

    name: str


Value: TypeAlias = int | float | str | tuple[int, ...] | Named
Term: TypeAlias = Any_ | Number | Operator


@dataclass(frozen=True)
class Statement:
    """A node that others may use, and the names of its outputs.

    Attributes:
        outputs: Names, in order.
        rest: Whether the last name stands for all the outputs that are left.
        node: The node.
    """

    outputs: tuple[str, ...]
    rest: bool
    node: Operator


def operator_named(name: str) -> str:
    """Return an operator with its domain."""
    domain = DOMAINS.get(name)
    bare = next((name.removeprefix(prefix) for prefix in PREFIXES if name.startswith(prefix)), name)
    return f"{domain}.{bare}" if domain else bare


def parse_pattern(text: str) -> tuple[Statement, ...]:
    """Return the statements of a pattern.

    Raises:
        ValueError: It is none.
    """
    statements: list[Statement] = []
    for line in ast.parse(text).body:
        if not isinstance(line, ast.Assign):
            raise ValueError(f"{ast.unparse(line)!r} is no pattern: write y = Operator(...)")
        outputs, rest = _targets(line.targets[0])
        made = _term(line.value)
        if not isinstance(made, Operator):
            raise ValueError(f"{ast.unparse(line)!r} is no pattern: an operator must stand after =")
        statements.append(Statement(outputs, rest, made))
    return tuple(statements)


def _targets(target: ast.expr) -> tuple[tuple[str, ...], bool]:
    parts = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
    rest = isinstance(parts[-1], ast.Starred)
    names = [part.value if isinstance(part, ast.Starred) else part for part in parts]
    return tuple(_name(name) for name in names), rest


def _name(expression: ast.expr) -> str:
    if not isinstance(expression, ast.Name):
        raise ValueError(f"{ast.unparse(expression)!r} is no name")
    return expression.id


def _term(expression: ast.expr) -> Term:
    match expression:
        case ast.Name(id=name):
            return Any_(name)
        case ast.List(elts=[ast.Name(id=name)]):
            return Any_(name, optional=True)
        case ast.Starred(value=ast.Name(id=name)):
            return Any_(name, rest=True)
        case ast.Constant(value=int() | float() as value):
            return Number(value)
        case ast.NamedExpr(target=ast.Name(id=name), value=ast.Call() as call):
            return _call(call, name)
        case ast.Call():
            return _call(expression, "")
        case _:
            raise ValueError(f"{ast.unparse(expression)!r} is no pattern")


def _call(call: ast.Call, name: str) -> Operator:
    attributes = [(keyword.arg or "", _value(keyword.value)) for keyword in call.keywords]
    operands = tuple(_term(operand) for operand in call.args)
    return Operator(operator_named(_name(call.func)), operands, tuple(attributes), name)


def _value(expression: ast.expr) -> Value:
    if isinstance(expression, ast.Name):
        return Named(expression.id)
    value = ast.literal_eval(expression)
    return tuple(value) if isinstance(value, list) else value
