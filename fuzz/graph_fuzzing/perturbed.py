"""Samples of rules with something odd about them: sizes, ranks, attributes, types, constants, uses.

A perturbed sample need not be an instance of the rule's pattern any more, nor a model at all: whoever runs it
finds out, and draws another.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from irgym.envs.graph.ir.graph import Attribute, Graph
from irgym.envs.graph.rules.rule import Rule, Sample
from irgym.envs.graph.rules.verification import Instance

Array = NDArray[Any]
Rng = np.random.Generator

WINDOWS: Mapping[str, Sequence[Attribute]] = {
    "pads": ((0, 1, 2, 0), (1, 0, 0, 2), (0, 0, 1, 1), (2, 1)),
    "auto_pad": ("SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET"),
    "ceil_mode": (0, 1),
    "count_include_pad": (0, 1),
    "strides": ((1, 2), (2, 2), (3, 1), (2,)),
    "dilations": ((1, 2), (2, 1), (2, 2), (2,)),
    "kernel_shape": ((1, 2), (2, 2), (3, 3), (2,)),
    "group": (1, 2, 4),
    "storage_order": (1,),
}
"""Attributes of convolutions and pools that may be added."""

OTHERS: Mapping[str, Sequence[Attribute]] = {
    "axis": (0, 1, 2, -1, -2),
    "keepdims": (0, 1),
    "noop_with_empty_axes": (0, 1),
    "allowzero": (0, 1),
    "alpha": (0.5, 1.0, 0.0, -2.0, 1e25),
    "beta": (0.5, 1.0, 0.0, -2.0),
    "transA": (0, 1),
    "transB": (0, 1),
    "transBatchA": (0, 1),
    "transBatchB": (0, 1),
    "approximate": ("none", "tanh"),
    "epsilon": (1e-5, 0.0, 0.5),
    "stash_type": (1,),
    "scale": (0.0, 0.25, 1e20),
    "direction": ("forward", "reverse"),
    "linear_before_reset": (0, 1),
    "layout": (0, 1),
}
"""Attributes of other operators."""


def _wide(dtype: Any) -> list[float]:
    """Return numbers at the edges of a floating-point type."""
    kind = np.finfo(dtype)
    tiny, most = float(kind.tiny), float(kind.max)
    return [
        0.0,
        -0.0,
        tiny,
        tiny / 8,
        -tiny,
        most,
        -most,
        most / 2,
        most**0.8,
        -(most**0.7),
        most**0.45,
        tiny**0.45,
        tiny**0.7,
        tiny**0.8,
        float(np.inf),
        -float(np.inf),
        float(np.nan),
        -1e9 if most > 1e9 else -6e4,
    ]


@dataclass(frozen=True)
class Odd:
    """A sample, and what its graph is made with.

    Attributes:
        sample: The sample.
        precision: Type of floating-point numbers.
        opset: Version of ONNX's own operators.
        steps: What was done to it, in words.
        extreme: Whether constants are at the edges of their type.
        after: Changes of the finished graph.
    """

    sample: Sample
    precision: str = "float32"
    opset: int = 20
    steps: tuple[str, ...] = ()
    extreme: bool = False
    after: tuple[Callable[[Instance], Instance], ...] = ()


def plain(rule: Rule, rng: Rng) -> Odd:
    """Return a random sample of a rule, of a random type."""
    precision = str(rng.choice(["float32"] * 8 + ["float16", "float64"]))
    opset = int(rng.choice([18, 20, 23, 23]))
    sample = _mapped(rule.sample(rng), lambda _, array: cast(array, precision))
    return Odd(sample, precision, opset)


def cast(array: Array, precision: str) -> Array:
    """Return floating-point numbers in another type."""
    with np.errstate(all="ignore"):
        return array.astype(precision) if array.dtype.kind == "f" else array


def perturbed(odd: Odd, rng: Rng) -> Odd:
    """Return a sample with one more thing that is odd."""
    kinds = [_resized, _resized, _broadcast, _broadcast, _lower, _higher, _scalar, _turned]
    kinds += [_attribute, _attribute, _more_attributes, _edge, _edge, _toggled, _absent, _aliased, _watched]
    kinds += [_whole, _other, _grown, _grown, _target, _target, _index]
    return kinds[int(rng.integers(len(kinds)))](odd, rng)


def _mapped(sample: Sample, change: Callable[[str, Array], Any]) -> Sample:
    values: dict[str, Any] = {}
    for name, value in sample.values.items():
        if isinstance(value, list | tuple) and all(isinstance(one, np.ndarray | list) for one in value):
            values[name] = [change(name, np.asarray(one)) for one in value]
        else:
            values[name] = None if value is None else change(name, np.asarray(value))
    return replace(sample, values=values)


def _arrays(sample: Sample) -> list[tuple[str, int, Array]]:
    """Return the arrays of a sample with their names, and their places among several."""
    found: list[tuple[str, int, Array]] = []
    for name, value in sample.values.items():
        many = value if isinstance(value, list) else [] if value is None else [value]
        found += [(name, place, np.asarray(one)) for place, one in enumerate(many)]
    return found


def _with(odd: Odd, name: str, place: int, array: Array, what: str, **more: Any) -> Odd:
    values = dict(odd.sample.values)
    if isinstance(values[name], list):
        values[name] = [array if at == place else one for at, one in enumerate(values[name])]
    else:
        values[name] = array
    step = f"{what} of {name}: {array.dtype}{list(array.shape)}"
    return replace(odd, sample=replace(odd.sample, values=values), steps=(*odd.steps, step), **more)


def _pick(odd: Odd, rng: Rng, *, least: int = 0) -> tuple[str, int, Array] | None:
    choices = [one for one in _arrays(odd.sample) if one[2].dtype.kind in "fb" and one[2].ndim >= least]
    return choices[int(rng.integers(len(choices)))] if choices else None


def _resized(odd: Odd, rng: Rng) -> Odd:
    """Give all axes of one size another, and the numbers in shapes that are equal to it."""
    sizes = sorted({n for _, _, one in _arrays(odd.sample) if one.dtype.kind in "fb" for n in one.shape})
    if not sizes:
        return odd
    old, new = int(rng.choice(sizes)), int(rng.choice([0, 1, 1, 1, 2, 3, 6]))

    def change(name: str, array: Array) -> Array:
        if array.dtype.kind not in "fb":
            return np.where(array == old, new, array) if array.ndim == 1 else array
        shape = tuple(new if n == old else n for n in array.shape)
        return _of_shape(array, shape, rng)

    counts = {name: new if n == old and new else n for name, n in odd.sample.counts.items()}
    sample = replace(_mapped(odd.sample, change), counts=counts)
    return replace(odd, sample=sample, steps=(*odd.steps, f"size {old} becomes {new}"))


def _of_shape(array: Array, shape: tuple[int, ...], rng: Rng) -> Array:
    if shape == array.shape:
        return array
    if array.dtype.kind == "b":
        return rng.random(shape) < 0.7
    return cast(np.asarray(rng.standard_normal(shape)), str(array.dtype))


def _broadcast(odd: Odd, rng: Rng) -> Odd:
    found = _pick(odd, rng, least=1)
    if found is None:
        return odd
    name, place, array = found
    axis = int(rng.integers(array.ndim))
    if not array.shape[axis]:
        return odd
    return _with(odd, name, place, array.take([0], axis), f"axis {axis} of size 1")


def _lower(odd: Odd, rng: Rng) -> Odd:
    found = _pick(odd, rng, least=1)
    if found is None:
        return odd
    name, place, array = found
    if not array.shape[0]:
        return odd
    return _with(odd, name, place, array[0] if array.ndim > 1 else np.asarray(array[0]), "a rank less")


def _higher(odd: Odd, rng: Rng) -> Odd:
    found = _pick(odd, rng)
    if found is None:
        return odd
    name, place, array = found
    lead = [(1,), (2,), (1, 1), (1, 2, 1)][int(rng.integers(4))]
    made = np.broadcast_to(array, (*lead, *array.shape)).copy()
    if rng.integers(2):
        return _with(odd, name, place, made, "a rank more")

    def change(_: str, one: Array) -> Array:
        kept = one.dtype.kind not in "fb" or not one.ndim
        return one if kept else np.broadcast_to(one, (*lead, *one.shape)).copy()

    sample = _mapped(odd.sample, change)
    return replace(odd, sample=sample, steps=(*odd.steps, f"all of a higher rank by {lead}"))


def _grown(odd: Odd, rng: Rng) -> Odd:
    """Give one axis of one array another size: others may be broadcast along it."""
    found = _pick(odd, rng, least=1)
    if found is None:
        return odd
    name, place, array = found
    axis = int(rng.integers(array.ndim))
    shape = (*array.shape[:axis], int(rng.integers(1, 6)), *array.shape[axis + 1 :])
    return _with(odd, name, place, _of_shape(array, shape, rng), f"axis {axis} of another size")


def _whole_arrays(odd: Odd) -> list[tuple[str, int, Array]]:
    return [one for one in _arrays(odd.sample) if one[2].dtype.kind == "i" and one[2].size]


def _target(odd: Odd, rng: Rng) -> Odd:
    """Put the numbers of a shape in another order, or take factors from one to another."""
    choices = [one for one in _whole_arrays(odd) if one[2].ndim == 1]
    if not choices:
        return odd
    name, place, array = choices[int(rng.integers(len(choices)))]
    numbers = [int(number) for number in array]
    if rng.integers(2):
        numbers = [int(number) for number in rng.permutation(numbers)]
    for _ in range(int(rng.integers(1, 4))):
        first, second = (int(at) for at in rng.integers(len(numbers), size=2))
        number = numbers[first]
        factors = [factor for factor in range(2, number + 1) if number % factor == 0]
        if factors and numbers[second] > 0 and first != second:
            factor = int(rng.choice(factors))
            numbers[first] //= factor
            numbers[second] *= factor
        elif rng.integers(3) == 0:
            numbers.insert(first, 1)
    return _with(
        odd, name, place, np.asarray(numbers, array.dtype), f"{numbers} in place of {array.tolist()}"
    )


def _index(odd: Odd, rng: Rng) -> Odd:
    """Change one whole number: an axis, a place, a size."""
    choices = _whole_arrays(odd)
    if not choices:
        return odd
    name, place, array = choices[int(rng.integers(len(choices)))]
    flat = array.reshape(-1).copy()
    at = int(rng.integers(flat.size))
    number = int(np.clip(flat[at], -(1 << 40), 1 << 40))
    flat[at] = int(rng.choice([number + 1, number - 1, -1 - number, 0, 1, -1]))
    return _with(odd, name, place, flat.reshape(array.shape), f"{flat.tolist()[:6]} in the whole numbers")


def _scalar(odd: Odd, rng: Rng) -> Odd:
    if rng.integers(2):

        def change(_: str, array: Array) -> Array:
            return np.asarray(array.flat[0]) if array.dtype.kind in "fb" and array.size else array

        return replace(odd, sample=_mapped(odd.sample, change), steps=(*odd.steps, "all of rank 0"))
    found = _pick(odd, rng)
    if found is None or not found[2].size:
        return odd
    name, place, array = found
    return _with(odd, name, place, np.asarray(array.flat[0]), "rank 0")


def _turned(odd: Odd, rng: Rng) -> Odd:
    found = _pick(odd, rng, least=2)
    if found is None:
        return odd
    name, place, array = found
    return _with(
        odd, name, place, array.transpose(rng.permutation(array.ndim)).copy(), "axes in another order"
    )


def _attribute(odd: Odd, rng: Rng) -> Odd:
    """Change or leave out an attribute."""
    sample = odd.sample
    tables: list[tuple[str | None, Mapping[str, Attribute]]] = [(None, sample.attributes)]
    tables += [(node, attributes) for node, attributes in sample.nodes.items() if attributes]
    owner, table = tables[int(rng.integers(len(tables)))]
    if not table:
        return odd
    name = str(rng.choice(sorted(table)))
    changed = dict(table)
    value = _changed(table[name], rng)
    if owner is not None and rng.integers(3) == 0:
        del changed[name]
    else:
        changed[name] = value
    step = f"attribute {name} = {changed.get(name, 'absent')}"
    if owner is None:
        made = replace(sample, attributes=changed)
    else:
        both = rng.integers(2) and all(one == table for one in sample.nodes.values())
        nodes = {key: changed if key == owner or both else one for key, one in sample.nodes.items()}
        made = replace(sample, nodes=nodes)
    return replace(odd, sample=made, steps=(*odd.steps, step))


def _changed(value: Attribute, rng: Rng) -> Attribute:
    if isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return int(rng.choice([value + 1, value - 1, -value, -1 - value, 0, 1]))
    if isinstance(value, float):
        return float(rng.choice([0.0, 1.0, -value, 1e25, 1e-25, value * 2]))
    if isinstance(value, tuple) and value and all(isinstance(one, int) for one in value):
        numbers = [int(one) for one in value if isinstance(one, int)]
        if rng.integers(2):
            return tuple(int(one) for one in rng.permutation(numbers))
        place = int(rng.integers(len(numbers)))
        numbers[place] = max(0, numbers[place] + int(rng.choice([-1, 1, 2])))
        return tuple(numbers)
    return value


def _more_attributes(odd: Odd, rng: Rng) -> Odd:
    nodes = odd.sample.nodes
    if not nodes:
        return odd
    windows = any(name in WINDOWS for one in nodes.values() for name in one) or bool(rng.integers(2))
    pool = WINDOWS if windows else OTHERS
    name = str(rng.choice(sorted(pool)))
    value = pool[name][int(rng.integers(len(pool[name])))]
    owner = str(rng.choice(sorted(nodes)))
    everywhere = bool(rng.integers(2))
    changed: dict[str, Mapping[str, Attribute]] = {}
    for key, attributes in nodes.items():
        if key != owner and not everywhere:
            changed[key] = attributes
            continue
        dropped = ("pads",) if name == "auto_pad" else ()
        kept = {own: one for own, one in attributes.items() if own not in dropped}
        changed[key] = {**kept, name: value}
    step = f"attribute {name} = {value}"
    return replace(odd, sample=replace(odd.sample, nodes=changed), steps=(*odd.steps, step))


def _edge(odd: Odd, rng: Rng) -> Odd:
    """Put numbers at the edge of the type into a weight, or scale it; sometimes two at once."""
    names = [one for one in _arrays(odd.sample) if one[0] in odd.sample.weights and one[2].dtype.kind == "f"]
    if not names:
        return odd
    edges = _wide(names[0][2].dtype)
    for place in rng.permutation(len(names))[: int(rng.integers(1, 3))]:
        name, at, array = names[int(place)]
        number = edges[int(rng.integers(len(edges)))]
        with np.errstate(all="ignore"):
            if rng.integers(3) and array.size:
                flat = array.reshape(-1).copy()
                flat[int(rng.integers(flat.size))] = number
                made = flat.reshape(array.shape)
            else:
                made = (array * np.asarray(number, array.dtype)).astype(array.dtype)
                if array.size == 1:
                    made = np.full(array.shape, number, array.dtype)
        odd = _with(odd, name, at, np.asarray(made), f"{number:.3g} in the weight", extreme=True)
    return odd


def _toggled(odd: Odd, rng: Rng) -> Odd:
    name = str(rng.choice(sorted(odd.sample.values)))
    weights = odd.sample.weights ^ {name}
    return replace(
        odd,
        sample=replace(odd.sample, weights=weights),
        steps=(*odd.steps, f"{name} {'is' if name in weights else 'is no'} weight"),
    )


def _absent(odd: Odd, rng: Rng) -> Odd:
    name = str(rng.choice(sorted(odd.sample.values)))
    values = {**odd.sample.values, name: None}
    return replace(odd, sample=replace(odd.sample, values=values), steps=(*odd.steps, f"{name} left out"))


def _whole(odd: Odd, rng: Rng) -> Odd:
    """Make all floating-point numbers whole ones: operators on single elements take those too."""
    kind = str(rng.choice(["int64", "int32"]))

    def change(_: str, array: Array) -> Array:
        with np.errstate(all="ignore"):
            return np.rint(array * 3).astype(kind) if array.dtype.kind == "f" else array

    sample = _mapped(odd.sample, change)
    return replace(odd, sample=sample, precision=kind, steps=(*odd.steps, f"numbers of {kind}"))


def _other(odd: Odd, rng: Rng) -> Odd:
    """Exchange the operator of a class, where the rule has one."""
    from irgym.envs.graph.rules.language import CLASSES

    if not odd.sample.operators:
        return odd
    name = str(rng.choice(sorted(odd.sample.operators)))
    now = odd.sample.operators[name]
    groups = [sorted(group) for group in CLASSES.values() if now in group]
    if not groups:
        return odd
    group = groups[int(rng.integers(len(groups)))]
    kind = str(rng.choice(group))
    operators = {key: kind if one == now else one for key, one in odd.sample.operators.items()}
    return replace(
        odd, sample=replace(odd.sample, operators=operators), steps=(*odd.steps, f"operator {kind}")
    )


def _aliased(odd: Odd, rng: Rng) -> Odd:
    seed = int(rng.integers(1 << 30))

    def change(instance: Instance) -> Instance:
        return aliased(instance, np.random.default_rng(seed))

    return replace(odd, after=(*odd.after, change), steps=(*odd.steps, "an operand used twice"))


def _watched(odd: Odd, rng: Rng) -> Odd:
    seed = int(rng.integers(1 << 30))

    def change(instance: Instance) -> Instance:
        return watched(instance, np.random.default_rng(seed))

    return replace(odd, after=(*odd.after, change), steps=(*odd.steps, "an inner value is an output"))


def aliased(instance: Instance, rng: Rng) -> Instance:
    """Return an instance in which one input or weight stands for another of its type, too."""
    graph = instance.graph
    leaves = [*graph.inputs, *graph.weights]
    pairs = [(a, b) for a in leaves for b in leaves if a != b and graph.types[a] == graph.types[b]]
    if not pairs:
        return instance
    kept, gone = pairs[int(rng.integers(len(pairs)))]
    nodes = [
        replace(one, inputs=tuple(kept if name == gone else name for name in one.inputs))
        for one in graph.nodes.values()
    ]
    weights = {name: one for name, one in graph.weights.items() if name != gone}
    inputs = [name for name in graph.inputs if name != gone]
    changed = Graph.of(nodes, graph.types, weights, inputs, graph.outputs, graph.opsets)
    feeds = {name: array for name, array in instance.feeds.items() if name != gone}
    anchor = next((one.name for one in changed.nodes.values() if one.name == instance.anchor), "")
    return replace(instance, graph=changed, feeds=feeds, anchor=anchor)


def watched(instance: Instance, rng: Rng) -> Instance:
    """Return an instance that returns one of its inner values, too."""
    graph = instance.graph
    inner = [name for name in graph.producers if name not in graph.outputs]
    if not inner:
        return instance
    outputs = (*graph.outputs, inner[int(rng.integers(len(inner)))])
    changed = Graph.of(graph.nodes.values(), graph.types, graph.weights, graph.inputs, outputs, graph.opsets)
    return replace(instance, graph=changed)
