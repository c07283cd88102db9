"""The language of rules: what operators to look for, when, and what to put in their place.

What to look for is written as Python that is parsed, never run:

- `y = Relu(c := Conv(x, w, [b]))` is a Relu of a Conv, which is called c. `[b]` is an operand that may be
  left out; `*xs` are any number of operands, as many as the others leave.
- `group=1` demands an attribute's value, or its default where it is left out; `axis=k` gives it a name.
- `a, b = Split(x, sizes)` makes two values, `*parts = Split(x, sizes)` any number, `*before, a, *after` one
  and any number before and after it; `_` is an output that is left out.
- `*ys = [Add(x, b) for x, b in zip(xs, bs)]` are as many nodes as `*xs` (or `*ys`) are values: each uses one
  of them. All have the same operator and attributes. What the comprehension does not name stands for the same
  in each.
- `CLASSES` are operators that a rule treats alike: `Unary(x)` is a Relu, or an Exp, and so on. `Anything` is
  all.
- `1.0` as an operand is a weight of one element with that value.
- `DOMAINS` says what operators of other domains than ONNX's own belong to.
"""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile
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
    "BlockedGlobalMaxPool": NCHWC,
    "BlockedMaxPool": NCHWC,
    "BlockedUpsample": NCHWC,
    "ReorderInput": NCHWC,
    "ReorderOutput": NCHWC,
}
"""Domains of operators that are not ONNX's own."""

SINGLE = frozenset({"GRU", "GlobalAveragePool", "GlobalMaxPool", "HardSigmoid", "HardSwish", "LSTM"})
"""ONNX's own operators that ONNX Runtime has for one floating-point type, like those of its own domains."""

PREFIXES = ("Blocked", "Microsoft", "Standard")
"""What is no part of an operator's name, but tells it from another: nchwc's, Microsoft's or ONNX's own."""

COMMUTATIVE = frozenset({"Add", "Mul", "And", "Or", "Max", "Min", "Equal", "Associative"})
"""Operators whose two operands may be exchanged."""

ANY = "Anything"
"""What stands for any operator."""

_UNARY = (
    "Abs Cast Ceil Clip Cos Elu Erf Exp Floor Gelu HardSigmoid HardSwish IsNaN LeakyRelu Log Mish Neg Not "
    "Reciprocal Relu Round Selu Sigmoid Sign Sin Softplus Softsign Sqrt Tanh ThresholdedRelu"
)
_BINARY = "Add Sub Mul Div Pow Max Min And Or Xor Equal Greater GreaterOrEqual Less LessOrEqual"
_IDLE = (
    "Add Sub Mul Div Pow "
    "Cast Concat Dropout Expand Flatten Reshape Slice Split Squeeze Tile Transpose Unsqueeze"
)
_REDUCE = "L1 L2 Max Mean Min Prod Sum SumSquare"

CLASSES: Mapping[str, frozenset[str]] = {
    "Additive": frozenset({"Add", "Sub"}),
    "Associative": frozenset({"Add", "Mul", "Max", "Min", "And", "Or"}),
    "Binary": frozenset(_BINARY.split()),
    # Those that may do nothing but hand on their first operand.
    "Idle": frozenset(_IDLE.split()),
    "Normalised": frozenset({"Softmax", "LogSoftmax"}),
    "Reduce": frozenset(f"Reduce{kind}" for kind in _REDUCE.split()),
    # Each element alone, whatever its place. Operands beside the first are single numbers.
    "Unary": frozenset({*_UNARY.split(), f"{MICROSOFT}.Gelu", f"{MICROSOFT}.QuickGelu"}),
    "View": frozenset({"Squeeze", "Unsqueeze", "Flatten"}),
}
"""Operators that patterns name together, by the name of the class."""


@dataclass(frozen=True)
class Any_:
    """Any value.

    Attributes:
        name: What it is called.
        optional: Whether it may be left out.
        rest: Whether it is several, as many as the others leave.
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

    @cached_property
    def commutative(self) -> bool:
        """Whether its operands may be exchanged."""
        return self.operator in COMMUTATIVE and len(self.operands) == 2

    @cached_property
    def operators(self) -> frozenset[str] | None:
        """The operators that it describes; None for any."""
        known = CLASSES.get(self.operator, frozenset({self.operator}))
        return None if self.operator == ANY else known

    @cached_property
    def parts(self) -> tuple[tuple[int, "Operator"], ...]:
        """The operands that are nodes, as far as their places are fixed, with these."""
        fixed = list(takewhile(lambda term: not (isinstance(term, Any_) and term.rest), self.operands))
        return tuple((place, term) for place, term in enumerate(fixed) if isinstance(term, Operator))


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
        node: The node.
        several: Those names that stand for several outputs each.
        each: For as many nodes as there are values: pairs of a name in the pattern of one node, and the name
        of
            the values. The nodes' outputs together have the one name of `outputs`.
    """

    outputs: tuple[str, ...]
    node: Operator
    several: frozenset[str] = frozenset()
    each: tuple[tuple[str, str], ...] = ()

    @cached_property
    def terms(self) -> tuple[Any_, ...]:
        """The outputs as terms."""
        return tuple(Any_(name, rest=name in self.several) for name in self.outputs)

    @cached_property
    def operands(self) -> frozenset[str]:
        """The names of the values that the node, or the nodes, use."""
        items = dict(self.each)
        return frozenset(items.get(name, name) for name in names_in(self.node))


def names_in(pattern: Operator) -> Iterator[str]:
    """Return the names of the values that a pattern's nodes use."""
    for term in pattern.operands:
        if isinstance(term, Any_):
            yield term.name
        elif isinstance(term, Operator):
            yield from names_in(term)


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
    return tuple(_statement(line) for line in ast.parse(text).body)


def _statement(line: ast.stmt) -> Statement:
    if not isinstance(line, ast.Assign):
        raise ValueError(f"{ast.unparse(line)!r} is no pattern: write y = Operator(...)")
    outputs, several = _targets(line.targets[0])
    right, each = line.value, ()
    if isinstance(right, ast.ListComp):
        each, right = _each(right.generators[0]), right.elt
    made = _term(right)
    if not isinstance(made, Operator):
        raise ValueError(f"{ast.unparse(line)!r} is no pattern: an operator must stand after =")
    return Statement(outputs, made, several, each)


def _each(loop: ast.comprehension) -> tuple[tuple[str, str], ...]:
    """Return the pairs of `x, b in zip(xs, bs)`, or the pair of `x in xs`."""
    items = loop.target.elts if isinstance(loop.target, ast.Tuple) else [loop.target]
    values = loop.iter.args if isinstance(loop.iter, ast.Call) else [loop.iter]
    return tuple((_name(item), _name(value)) for item, value in zip(items, values, strict=True))


def _targets(target: ast.expr) -> tuple[tuple[str, ...], frozenset[str]]:
    parts = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
    several = frozenset(_name(part.value) for part in parts if isinstance(part, ast.Starred))
    return tuple(_name(part.value if isinstance(part, ast.Starred) else part) for part in parts), several


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
    if isinstance(expression, ast.List):
        return tuple(ast.literal_eval(expression))
    return ast.literal_eval(expression)
