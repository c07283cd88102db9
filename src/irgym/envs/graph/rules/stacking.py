"""Rules for tensors that are cut into steps and stacked again, which only reorders their axes.

An unrolled loop slices its input into steps and stacks the results. Once the loop is a single operator again,
the slices and the stack are superfluous. Each rule removes all steps at once.
"""

from typing import Any

import numpy as np

from irgym.envs.graph.rewriting.rule import Rule, Sample
from irgym.envs.graph.rewriting.samples.operands import Rng, array, either, pick, resized, sample, shape_of

_SOURCE = "unrolled loops: the stack of the parts of a tensor"


def _views(rng: Rng) -> tuple[dict[str, Any], int, int]:
    """Return x, axes a to squeeze and e to unsqueeze in its parts; the axis of the cut, and of the stack."""
    shape = shape_of(rng, 2)
    axis = int(rng.integers(len(shape)))
    shape = resized(shape, axis, int(rng.integers(2, 5)))
    ones = [place for place, size in enumerate(shape) if place != axis and size == 1]
    lost = [axis, *pick(rng, [], ones)]
    rank = len(shape) - len(lost) + 1
    place = int(rng.integers(rank))
    return {"x": array(rng, *shape), "a": lost, "e": [either(rng, place, rank)]}, axis, place


def _parts(rng: Rng) -> Sample:
    values, axis, place = _views(rng)
    shape = values["x"].shape
    attributes = {"k": place, "m": either(rng, axis, len(shape))}
    sizes = [1] * shape[axis]
    return sample({**values, "s": sizes}, "a e s", attributes=attributes, counts={"parts": len(sizes)})


def _run(rng: Rng, size: int) -> range:
    """Return consecutive indices below a size."""
    start = int(rng.integers(size))
    return range(start, int(rng.integers(start + 1, size + 1)))


def _slices(rng: Rng) -> Sample:
    values, axis, place = _views(rng)
    run = _run(rng, values["x"].shape[axis])
    lows, ends = [[place] for place in run], [[place + 1] for place in run]
    rest = [[either(rng, axis, values["x"].ndim)], *pick(rng, [], [[1]])]
    more = {"lows": lows, "ends": ends, "rest": rest}
    return sample({**values, **more}, "a e lows ends rest", attributes={"k": place})


def _gathers(rng: Rng) -> Sample:
    x = array(rng, *shape_of(rng, 2))
    axis, place = int(rng.integers(x.ndim)), int(rng.integers(x.ndim))
    size = x.shape[axis]
    places = [np.array(either(rng, index, size)) for index in _run(rng, size)]
    values = {"x": x, "places": places, "e": [place]}
    return sample(values, "places e", attributes={"k": place, "m": either(rng, axis, x.ndim)})


def _part(rng: Rng) -> Sample:
    x = array(rng, *resized(shape_of(rng, 2), 0, 3))
    place = int(rng.integers(3))
    values = {"x": x, "s": [1, 1, 1], "a": [0]}
    return sample(
        values, "s a", attributes={"m": pick(rng, 0, -x.ndim)}, counts={"head": place, "tail": 2 - place}
    )


_STACK = """
order = stacked(of.shape, axis, y.shape, front(k, y.rank))
moved = of if ones_moved(of.shape, order) else Transpose(of, perm=order)
y = moved if moved.shape == y.shape else Reshape(moved, whole(*y.shape))
"""
"""Replacement: y from the tensor `of` that its steps were cut from."""

_CUT = "of = x if end - start == x.shape[axis] else Slice(x, whole(start), whole(end), whole(axis), whole(1))"

RULES = (
    Rule(
        "stack-parts",
        before="y = Concat(*zs, axis=k); *zs = [Unsqueeze(h, e) for h in hs];"
        " *hs = [Squeeze(p, a) for p in parts]; *parts = (s_ := Split(x, [s], axis=m))",
        where="y.solid and zs[0].shape[k] == 1 and x.shape[m] == len(parts)"
        " and stacked(x.shape, front(m, x.rank), y.shape, front(k, y.rank))",
        after=f"of, axis = x, front(m, x.rank){_STACK}",
        sample=_parts,
        shared=("zs", "hs", "s_"),
        source=_SOURCE,
    ),
    Rule(
        "stack-slices",
        before="y = Concat(*zs, axis=k); *zs = [Unsqueeze(h, e) for h in hs];"
        " *hs = [Squeeze(p, a) for p in parts];"
        " *parts = [Slice(x, low, end, *rest) for low, end in zip(lows, ends)]",
        where="y.solid and zs[0].shape[k] == 1"
        " and stepping([window(x.shape, (low, end, *rest)) for low, end in zip(lows, ends)])",
        after=f"""
axis, start, end = stepping([window(x.shape, (low, end, *rest)) for low, end in zip(lows, ends)])
{_CUT}{_STACK}""",
        sample=_slices,
        shared=("zs", "hs", "parts"),
        source=_SOURCE,
    ),
    Rule(
        "stack-gathers",
        before="y = Concat(*zs, axis=k); *zs = [Unsqueeze(g, e) for g in gs];"
        " *gs = [Gather(x, i, axis=m) for i in places]",
        where="y.solid and zs[0].shape[k] == 1 and all([i.rank == 0 and i.elements for i in places])"
        " and [front(i.elements[0], x.shape[m]) - front(places[0].elements[0], x.shape[m]) for i in places]"
        " == list(range(len(places)))",
        after=f"""
axis, start = front(m, x.rank), front(places[0].elements[0], x.shape[m])
end = start + len(places)
{_CUT}{_STACK}""",
        sample=_gathers,
        shared=("zs", "gs"),
        source=_SOURCE,
    ),
    Rule(
        "squeeze-of-split",
        before="y = Squeeze(p, a); *head, p, *tail = (s_ := Split(x, [s], axis=m))",
        where="all(head)",
        after="""
start = sum([part.shape[m] for part in head])
y = Squeeze(Slice(x, whole(start), whole(start + p.shape[m]), whole(front(m, x.rank)), whole(1)), a)
""",
        sample=_part,
        shared=("s_",),
        source="ONNX Runtime's GatherSliceToSplitFusion, in steps",
    ),
)
"""Rules for stacks."""
