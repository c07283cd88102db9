"""The language of patterns: the operators that a rule looks for.

A pattern is written as Python, which is parsed and never run:

- `y = Relu(c := Conv(x, w, [b]))` is a Relu of a Conv named c. `[b]` is an optional operand; `*xs` is any
  number of operands, those that the other terms leave over.
- `group=1` requires the value of an attribute, given or by default; `axis=k` names the value.
- `a, b = Split(x, sizes)` has two results, `*parts = Split(x, sizes)` any number, and `*before, a, *after`
  one named result with any number before and after it; `_` is an unused result.
- `*ys = [Add(x, b) for x, b in zip(xs, bs)]` is a node for each value of `*xs` (or `*ys`). All nodes have the
  same operator and attributes; names that the comprehension does not bind mean the same value in each.
- A class in `CLASSES` matches any of its operators: `Unary(x)` is a Relu, an Exp, and so on. `Anything`
  matches every operator.
- `1.0` as an operand is a weight of one element with that value.
- Operators in `DOMAINS` belong to a domain other than ONNX's.
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
"""Name of unused outputs."""

DOMAINS: Mapping[str, str] = {
    "Attention": MICROSOFT,
    "BiasGelu": MICROSOFT,
    "DynamicQuantizeMatMul": MICROSOFT,
    "FastGelu": MICROSOFT,
    "FusedConv": MICROSOFT,
    "FusedGemm": MICROSOFT,
    "FusedMatMul": MICROSOFT,
    "MatMulIntegerToFloat": MICROSOFT,
    "MultiHeadAttention": MICROSOFT,
    "QGemm": MICROSOFT,
    "QLinearAdd": MICROSOFT,
    "QLinearConcat": MICROSOFT,
    "QLinearGlobalAveragePool": MICROSOFT,
    "QLinearLeakyRelu": MICROSOFT,
    "QLinearMul": MICROSOFT,
    "QLinearSigmoid": MICROSOFT,
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
"""Domains of operators outside ONNX's domain, by the names that patterns use."""

INTEGRAL = frozenset(
    {
        "QGemm",
        "QLinearAdd",
        "QLinearConcat",
        "QLinearGlobalAveragePool",
        "QLinearLeakyRelu",
        "QLinearMul",
        "QLinearSigmoid",
    }
)
"""Those on quantised numbers, which ONNX Runtime has whatever the floating-point type."""

SINGLE = frozenset({"GRU", "GlobalAveragePool", "GlobalMaxPool", "HardSigmoid", "HardSwish", "LSTM"})
"""ONNX operators that ONNX Runtime, as for its contrib operators, has for one floating-point type only."""

PREFIXES = ("Blocked", "Microsoft", "Standard")
"""Prefixes in patterns that are not part of the operator's name, but tell operators of two domains apart."""

COMMUTATIVE = frozenset({"Add", "Mul", "And", "Or", "Max", "Min", "Equal", "Associative"})
"""Operators whose two operands may be swapped."""

ANY = "Anything"
"""Name that matches any operator."""

_UNARY = (
    "Abs Cast Ceil Clip Cos Elu Erf Exp Floor Gelu HardSigmoid HardSwish IsNaN LeakyRelu Log Mish Neg Not "
    "Reciprocal Relu Round Selu Sigmoid Sign Sin Softplus Softsign Sqrt Tanh ThresholdedRelu"
)
_BINARY = "Add Sub Mul Div Pow Max Min And Or Xor Equal Greater GreaterOrEqual Less LessOrEqual"
_IDLE = (
    "Add Sub Mul Div Pow "
    "Cast Concat Dropout Expand Flatten Reshape Slice Split Squeeze Tile Transpose Unsqueeze"
)
_MOVING = "Expand Flatten Gather MaxPool Reshape Slice Squeeze Tile Transpose Unsqueeze"
_LINEAR = "GlobalAveragePool LeakyRelu Sigmoid"
_REDUCE = "L1 L2 Max Mean Min Prod Sum SumSquare"

CLASSES: Mapping[str, frozenset[str]] = {
    "Additive": frozenset({"Add", "Sub"}),
    "Associative": frozenset({"Add", "Mul", "Max", "Min", "And", "Or"}),
    "Binary": frozenset(_BINARY.split()),
    # Operators that may only pass their first operand on.
    "Idle": frozenset(_IDLE.split()),
    "LinearBinary": frozenset({f"{MICROSOFT}.QLinearAdd", f"{MICROSOFT}.QLinearMul"}),
    "LinearUnary": frozenset(f"{MICROSOFT}.QLinear{kind}" for kind in _LINEAR.split()),
    # Operators whose results are elements of the first operand; MaxPool picks the greatest.
    "Moving": frozenset(_MOVING.split()),
    "Normalised": frozenset({"Softmax", "LogSoftmax"}),
    "Reduce": frozenset(f"Reduce{kind}" for kind in _REDUCE.split()),
    # Element-wise operators. Operands after the first are single numbers.
    "Unary": frozenset({*_UNARY.split(), f"{MICROSOFT}.Gelu", f"{MICROSOFT}.QuickGelu"}),
    "View": frozenset({"Squeeze", "Unsqueeze", "Flatten"}),
}
"""Classes of operators that rules treat alike, by name."""


@dataclass(frozen=True)
class Any_:
    """A term that matches any value.

    Attributes:
        name: Name in the rule.
        optional: Whether the operand may be missing.
        rest: Whether the term matches all values that the other terms leave over.
    """

    name: str
    optional: bool = False
    rest: bool = False


@dataclass(frozen=True)
class Number:
    """A term that matches a weight of one element.

    Attributes:
        value: Value of the element; an int where it is an index.
    """

    value: int | float


@dataclass(frozen=True)
class Operator:
    """A term that matches a node.

    Attributes:
        operator: Operator with its domain, a class of operators, or `ANY`.
        operands: Terms for the operands.
        attributes: Pairs of an attribute's name and its value, or the name that the rule gives to the value.
        name: Name of the node in the rule; empty if it has none.
    """

    operator: str
    operands: tuple["Term", ...]
    attributes: tuple[tuple[str, "Value"], ...]
    name: str = ""

    @cached_property
    def commutative(self) -> bool:
        """Whether the two operands may be swapped."""
        return self.operator in COMMUTATIVE and len(self.operands) == 2

    @cached_property
    def operators(self) -> frozenset[str] | None:
        """The operators that match; None for any."""
        known = CLASSES.get(self.operator, frozenset({self.operator}))
        return None if self.operator == ANY else known

    @cached_property
    def all_given(self) -> str | None:
        """The name of all operands together, where the only term is such a name."""
        [term, *others] = self.operands or (None,)
        return term.name if isinstance(term, Any_) and term.rest and not others else None

    @cached_property
    def parts(self) -> tuple[tuple[int, "Operator"], ...]:
        """Pairs of place and term of the operands that are nodes, as far as their places are fixed."""
        fixed = list(takewhile(lambda term: not (isinstance(term, Any_) and term.rest), self.operands))
        return tuple((place, term) for place, term in enumerate(fixed) if isinstance(term, Operator))


@dataclass(frozen=True)
class Named:
    """A name that a rule gives to the value of an attribute."""

    name: str


Value: TypeAlias = int | float | str | tuple[int, ...] | Named
Term: TypeAlias = Any_ | Number | Operator


@dataclass(frozen=True)
class Statement:
    """A node, or a list of similar nodes, with names for the outputs.

    Attributes:
        outputs: Names of the outputs, in order.
        node: Term for the node.
        several: Names in `outputs` that stand for several outputs each.
        each: For a list of nodes, pairs of the name in the term and the name of the list of values. The one
            name in `outputs` then stands for the outputs of all nodes.
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
        """Names of the values that the nodes use."""
        items = dict(self.each)
        return frozenset(items.get(name, name) for name in names_in(self.node))


def names_in(pattern: Operator) -> Iterator[str]:
    """Return the names of the values that the nodes of a pattern use."""
    for term in pattern.operands:
        if isinstance(term, Any_):
            yield term.name
        elif isinstance(term, Operator):
            yield from names_in(term)


def operator_named(name: str) -> str:
    """Return the operator with its domain, given its name in a rule."""
    domain = DOMAINS.get(name)
    bare = next((name.removeprefix(prefix) for prefix in PREFIXES if name.startswith(prefix)), name)
    return f"{domain}.{bare}" if domain else bare


def parse_pattern(text: str) -> tuple[Statement, ...]:
    """Return the statements of a pattern.

    Raises:
        ValueError: The text is no pattern.
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
