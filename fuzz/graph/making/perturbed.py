"""Odd changes of samples: sizes, ranks, attributes, types, constants, uses.

A perturbed sample need not be an instance of the rule's pattern any longer, nor a valid model: the caller
finds out, and draws another.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from fuzz.graph.making.odd import Array, Odd, Rng, arrays_of, cast, mapped, pick, with_array
from fuzz.graph.making.odd_attributes import changed_attribute, more_attributes, other_operator
from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.rewriting.verification import Instance

MOST_FACTOR = 1 << 10
"""Greatest factor that moves between two numbers of a shape."""


def _wide(dtype: Any) -> list[float]:
    """Return numbers at the edges of the range of a floating-point type."""
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


def perturbed(odd: Odd, rng: Rng) -> Odd:
    """Return a sample with another odd change."""
    kinds = [_resized, _resized, _broadcast, _broadcast, _lower, _higher, _scalar, _turned]
    kinds += [
        changed_attribute,
        changed_attribute,
        more_attributes,
        _edge,
        _edge,
        _toggled,
        _absent,
        _aliased,
        _watched,
    ]
    kinds += [_whole, other_operator, _grown, _grown, _target, _target, _index]
    return kinds[int(rng.integers(len(kinds)))](odd, rng)


def _resized(odd: Odd, rng: Rng) -> Odd:
    """Change the size of all axes of a size, and all equal numbers in shapes."""
    sizes = sorted(
        {n for _, _, array in arrays_of(odd.sample) if array.dtype.kind in "fb" for n in array.shape}
    )
    if not sizes:
        return odd
    old, new = int(rng.choice(sizes)), int(rng.choice([0, 1, 1, 1, 2, 3, 6]))

    def change(name: str, array: Array) -> Array:
        if array.dtype.kind not in "fb":
            return np.where(array == old, new, array) if array.ndim == 1 else array
        shape = tuple(new if n == old else n for n in array.shape)
        return _of_shape(array, shape, rng)

    counts = {name: new if n == old and new else n for name, n in odd.sample.counts.items()}
    sample = replace(mapped(odd.sample, change), counts=counts)
    return replace(odd, sample=sample, steps=(*odd.steps, f"size {old} becomes {new}"))


def _of_shape(array: Array, shape: tuple[int, ...], rng: Rng) -> Array:
    if shape == array.shape:
        return array
    if array.dtype.kind == "b":
        return rng.random(shape) < 0.7
    return cast(np.asarray(rng.standard_normal(shape)), str(array.dtype))


def _broadcast(odd: Odd, rng: Rng) -> Odd:
    found = pick(odd, rng, least=1)
    if found is None:
        return odd
    name, place, array = found
    axis = int(rng.integers(array.ndim))
    if not array.shape[axis]:
        return odd
    return with_array(odd, name, place, array.take([0], axis), f"axis {axis} of size 1")


def _lower(odd: Odd, rng: Rng) -> Odd:
    found = pick(odd, rng, least=1)
    if found is None:
        return odd
    name, place, array = found
    if not array.shape[0]:
        return odd
    return with_array(odd, name, place, array[0] if array.ndim > 1 else np.asarray(array[0]), "a rank less")


def _higher(odd: Odd, rng: Rng) -> Odd:
    found = pick(odd, rng)
    if found is None:
        return odd
    name, place, array = found
    lead = [(1,), (2,), (1, 1), (1, 2, 1)][int(rng.integers(4))]
    made = np.broadcast_to(array, (*lead, *array.shape)).copy()
    if rng.integers(2):
        return with_array(odd, name, place, made, "a rank more")

    def change(_: str, array: Array) -> Array:
        kept = array.dtype.kind not in "fb" or not array.ndim
        return array if kept else np.broadcast_to(array, (*lead, *array.shape)).copy()

    sample = mapped(odd.sample, change)
    return replace(odd, sample=sample, steps=(*odd.steps, f"all of a higher rank by {lead}"))


def _grown(odd: Odd, rng: Rng) -> Odd:
    """Change the size of one axis of one array, along which others may then broadcast."""
    found = pick(odd, rng, least=1)
    if found is None:
        return odd
    name, place, array = found
    axis = int(rng.integers(array.ndim))
    shape = (*array.shape[:axis], int(rng.integers(1, 6)), *array.shape[axis + 1 :])
    return with_array(odd, name, place, _of_shape(array, shape, rng), f"axis {axis} of another size")


def _whole_arrays(odd: Odd) -> list[tuple[str, int, Array]]:
    return [choice for choice in arrays_of(odd.sample) if choice[2].dtype.kind == "i" and choice[2].size]


def _target(odd: Odd, rng: Rng) -> Odd:
    """Reorder the numbers of a shape, or move factors between them."""
    choices = [choice for choice in _whole_arrays(odd) if choice[2].ndim == 1]
    if not choices:
        return odd
    name, place, array = choices[int(rng.integers(len(choices)))]
    numbers = [int(number) for number in array]
    if rng.integers(2):
        numbers = [int(number) for number in rng.permutation(numbers)]
    for _ in range(int(rng.integers(1, 4))):
        first, second = (int(at) for at in rng.integers(len(numbers), size=2))
        number = numbers[first]
        factors = [factor for factor in range(2, min(number, MOST_FACTOR) + 1) if number % factor == 0]
        if factors and numbers[second] > 0 and first != second:
            factor = int(rng.choice(factors))
            numbers[first] //= factor
            numbers[second] *= factor
        elif rng.integers(3) == 0:
            numbers.insert(first, 1)
    return with_array(
        odd, name, place, _within(numbers, array.dtype), f"{numbers} in place of {array.tolist()}"
    )


def _within(numbers: Any, dtype: Any) -> Array:
    """Return whole numbers as an array of a type, which may be short; those beyond its range are cut."""
    limits = np.iinfo(dtype)
    return np.clip(np.asarray(numbers, np.int64), limits.min, limits.max).astype(dtype)


def _index(odd: Odd, rng: Rng) -> Odd:
    """Change an integer: an axis, an index, a size."""
    choices = _whole_arrays(odd)
    if not choices:
        return odd
    name, place, array = choices[int(rng.integers(len(choices)))]
    flat = array.reshape(-1).copy()
    at = int(rng.integers(flat.size))
    number = int(np.clip(flat[at], -(1 << 40), 1 << 40))
    flat[at] = _within(int(rng.choice([number + 1, number - 1, -1 - number, 0, 1, -1])), flat.dtype)
    return with_array(
        odd, name, place, flat.reshape(array.shape), f"{flat.tolist()[:6]} in the whole numbers"
    )


def _scalar(odd: Odd, rng: Rng) -> Odd:
    if rng.integers(2):

        def change(_: str, array: Array) -> Array:
            return np.asarray(array.flat[0]) if array.dtype.kind in "fb" and array.size else array

        return replace(odd, sample=mapped(odd.sample, change), steps=(*odd.steps, "all of rank 0"))
    found = pick(odd, rng)
    if found is None or not found[2].size:
        return odd
    name, place, array = found
    return with_array(odd, name, place, np.asarray(array.flat[0]), "rank 0")


def _turned(odd: Odd, rng: Rng) -> Odd:
    found = pick(odd, rng, least=2)
    if found is None:
        return odd
    name, place, array = found
    return with_array(
        odd, name, place, array.transpose(rng.permutation(array.ndim)).copy(), "axes in another order"
    )


def _edge(odd: Odd, rng: Rng) -> Odd:
    """Put numbers at the edge of the type into a weight, or scale it; sometimes both."""
    names = [
        choice
        for choice in arrays_of(odd.sample)
        if choice[0] in odd.sample.weights and choice[2].dtype.kind == "f"
    ]
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
        odd = with_array(odd, name, at, np.asarray(made), f"{number:.3g} in the weight", extreme=True)
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
    """Replace all floating-point numbers by integers, which element-wise operators accept too."""
    kind = str(rng.choice(["int64", "int32"]))

    def change(_: str, array: Array) -> Array:
        with np.errstate(all="ignore"):
            return np.rint(array * 3).astype(kind) if array.dtype.kind == "f" else array

    sample = mapped(odd.sample, change)
    return replace(odd, sample=sample, precision=kind, steps=(*odd.steps, f"numbers of {kind}"))


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
    """Return an instance in which an input or weight replaces another of the same type.

    Integers remain: they are shapes and axes, on which types depend.
    """
    graph = instance.graph
    leaves = [name for name in (*graph.inputs, *graph.weights) if "int" not in graph.types[name].dtype]
    pairs = [(a, b) for a in leaves for b in leaves if a != b and graph.types[a] == graph.types[b]]
    if not pairs:
        return instance
    kept, gone = pairs[int(rng.integers(len(pairs)))]
    nodes = [
        replace(node, inputs=tuple(kept if name == gone else name for name in node.inputs))
        for node in graph.nodes.values()
    ]
    weights = {name: weight for name, weight in graph.weights.items() if name != gone}
    inputs = [name for name in graph.inputs if name != gone]
    changed = Graph.of(nodes, graph.types, weights, inputs, graph.outputs, graph.opsets)
    feeds = {name: array for name, array in instance.feeds.items() if name != gone}
    anchor = next((node.name for node in changed.nodes.values() if node.name == instance.anchor), "")
    return replace(instance, graph=changed, feeds=feeds, anchor=anchor)


def watched(instance: Instance, rng: Rng) -> Instance:
    """Return an instance with an inner value as a further output."""
    graph = instance.graph
    inner = [name for name in graph.producers if name not in graph.outputs]
    if not inner:
        return instance
    outputs = (*graph.outputs, inner[int(rng.integers(len(inner)))])
    changed = Graph.of(graph.nodes.values(), graph.types, graph.weights, graph.inputs, outputs, graph.opsets)
    return replace(instance, graph=changed)
