"""Rules for Split, Concat, Slice and Gather: pairs that cancel or merge.

All are exact. Slices and indices must be known, as integer weights.
"""

from typing import Any

from irgym.envs.graph.rewriting.rule import Rule, Sample
from irgym.envs.graph.rewriting.samples.operands import (
    Rng,
    array,
    axis_of,
    either,
    index_array,
    parts_of,
    pick,
    resized,
    sample,
    shape_of,
)

_SLICE = "Slice({}, *[whole(*column) for column in columns({})])"


def _cut(rng: Rng, **more: Any) -> Sample:
    """Return operands x and s of a Split into `parts`, to be joined or split again along the same axis."""
    shape, sizes = shape_of(rng), parts_of(rng)
    axis = int(rng.integers(len(shape)))
    return sample(
        {"x": array(rng, *resized(shape, axis, sum(sizes))), "s": sizes},
        "s",
        attributes={"k": either(rng, axis, len(shape)), "m": either(rng, axis, len(shape))},
        counts={"parts": len(sizes)},
        **more,
    )


def _neighbours(rng: Rng) -> Sample:
    split = _cut(rng)
    sizes = split.values["s"]
    place = int(rng.integers(len(sizes) - 1))
    rest = [resized(split.values["x"].shape, axis_of(split, split.values["x"].ndim), 2)]
    heads = [array(rng, *shape) for shape in rest * int(rng.integers(3))]
    tails = [array(rng, *shape) for shape in rest * int(rng.integers(1, 3))]
    values = {**split.values, "head": heads, "tail": tails}
    counts = {"before": place, "after": len(sizes) - place - 2}
    return sample(values, "s", attributes=split.attributes, counts=counts)


def _cut_join(rng: Rng) -> Sample:
    """Return a Concat that is split again, at some of its joints or inside its parts."""
    shape = shape_of(rng)
    axis = int(rng.integers(len(shape)))
    runs = [(pick(rng, [a], [b, a - b] if a > b else [a]), a) for a, b in rng.integers(1, 4, (3, 2)).tolist()]
    left = [size for parts, _ in runs for size in parts]
    right = [size for parts, total in runs for size in pick(rng, parts, [total])]
    return sample(
        {"xs": [array(rng, *resized(shape, axis, size)) for size in left], "s": right},
        "s",
        attributes={"k": either(rng, axis, len(shape)), "m": either(rng, axis, len(shape))},
        counts={"ys": len(right)},
    )


def _cut_twice(rng: Rng) -> Sample:
    split = _cut(rng)
    sizes = list(split.values["s"])
    place = int(rng.integers(len(sizes)))
    sizes[place] = 3
    axis = axis_of(split, split.values["x"].ndim)
    x = array(rng, *resized(split.values["x"].shape, axis, sum(sizes)))
    inner = pick(rng, [1, 2], [1, 1, 1])
    counts = {"head": place, "tail": len(sizes) - place - 1, "parts": len(inner)}
    return sample({"x": x, "s": sizes, "t": inner}, "s t", attributes=split.attributes, counts=counts)


def _joined_twice(rng: Rng) -> Sample:
    shape = shape_of(rng)
    axis = int(rng.integers(len(shape)))

    def some(low: int) -> list[Any]:
        return [array(rng, *resized(shape, axis, 2)) for _ in range(int(rng.integers(low, 3)))]

    attributes = {"k": either(rng, axis, len(shape)), "m": either(rng, axis, len(shape))}
    return sample({"head": some(0), "tail": some(0), "inner": some(1)}, attributes=attributes)


def _window(rng: Rng, shape: tuple[int, ...], axis: int, low: int, high: int) -> list[list[int]]:
    """Return operands of a Slice along an axis, within a range, and possibly along another axis."""
    start = int(rng.integers(low, high))
    end, step = int(rng.integers(start + 1, high + 1)), int(rng.integers(1, 3))
    lows, highs, axes, steps = [start], [end], [either(rng, axis, len(shape))], [step]
    other = (axis + 1) % len(shape)
    if other != axis and rng.integers(2):
        lows, highs, axes, steps = [*lows, -1], [*highs, 1 << 40], [*axes, other], [*steps, 1]
    if steps == [1] * len(steps) and rng.integers(2):
        return [lows, highs, axes]
    return [lows, highs, axes, steps]


def _slice_of_join(rng: Rng) -> Sample:
    shape, sizes = shape_of(rng), parts_of(rng)
    axis, place = int(rng.integers(len(shape))), int(rng.integers(len(sizes)))
    xs = [array(rng, *resized(shape, axis, size)) for size in sizes]
    start = sum(sizes[:place])
    cut = _window(rng, shape, axis, start, start + sizes[place])
    values = {"head": xs[:place], "x": xs[place], "tail": xs[place + 1 :], "cut": cut}
    return sample(values, "cut", attributes={"k": either(rng, axis, len(shape))})


def _slices(rng: Rng) -> Sample:
    x = array(rng, *(int(size) for size in rng.integers(4, 7, int(rng.integers(1, 4)))))
    axis = int(rng.integers(x.ndim))
    other = int(rng.integers(x.ndim))
    first: Any = [[1], [x.shape[axis]], [axis], [int(rng.integers(1, 3))]]
    left = (
        len(range(*(slice(1, None, first[3][0]).indices(x.shape[axis])))) if other == axis else x.shape[other]
    )
    start = int(rng.integers(left))
    second = [[start], [int(rng.integers(start + 1, left + 1))], [other], [int(rng.integers(1, 3))]]
    return sample({"x": x, "first": first, "cut": second}, "first cut")


def _slice_of_part(rng: Rng) -> Sample:
    split = _cut(rng)
    x, sizes = split.values["x"], split.values["s"]
    place = int(rng.integers(len(sizes)))
    axis = axis_of(split, x.ndim)
    cut = _window(rng, x.shape, axis, 0, sizes[place])
    counts = {"head": place, "tail": len(sizes) - place - 1}
    return sample(
        {**split.values, "cut": cut}, "s cut", attributes={"k": split.attributes["k"]}, counts=counts
    )


def _places(rng: Rng, low: int, high: int) -> Any:
    shape = pick(rng, (), (), (2,), (1, 2))
    return index_array(rng, low, high, shape)


def _gather_of_slice(rng: Rng) -> Sample:
    x = array(rng, *(int(size) for size in rng.integers(4, 7, int(rng.integers(1, 4)))))
    axis, step = int(rng.integers(x.ndim)), int(rng.integers(1, 3))
    count = len(range(1, x.shape[axis], step))
    cut = [[1], [1 << 40], [either(rng, axis, x.ndim)], [step]]
    values = {"x": x, "cut": cut, "i": _places(rng, -count, count)}
    return sample(values, "cut i", attributes={"k": either(rng, axis, x.ndim)})


def _gather_of_join(rng: Rng) -> Sample:
    shape, sizes = shape_of(rng), parts_of(rng)
    axis, place = int(rng.integers(len(shape))), int(rng.integers(len(sizes)))
    xs = [array(rng, *resized(shape, axis, size)) for size in sizes]
    start = sum(sizes[:place])
    shift = int(rng.choice([0, -sum(sizes)]))
    places = _places(rng, start + shift, start + sizes[place] + shift)
    values = {"head": xs[:place], "x": xs[place], "tail": xs[place + 1 :], "i": places}
    axes = {"k": either(rng, axis, len(shape)), "m": either(rng, axis, len(shape))}
    return sample(values, "i", attributes=axes)


def _gather_of_part(rng: Rng) -> Sample:
    split = _cut(rng)
    sizes = split.values["s"]
    place = int(rng.integers(len(sizes)))
    values = {**split.values, "i": _places(rng, -sizes[place], sizes[place])}
    counts = {"head": place, "tail": len(sizes) - place - 1}
    return sample(values, "s i", attributes=split.attributes, counts=counts)


def _gathers(rng: Rng) -> Sample:
    x = array(rng, *shape_of(rng))
    axis = int(rng.integers(x.ndim))
    size, count = x.shape[axis], int(rng.integers(1, 5))
    first = index_array(rng, -size, size, (count,))
    values = {"x": x, "i": first, "j": _places(rng, -count, count)}
    return sample(values, "i j", attributes={"k": either(rng, axis, x.ndim), "m": either(rng, axis, x.ndim)})


def _gather_of_transpose(rng: Rng) -> Sample:
    x = array(rng, *shape_of(rng))
    order = tuple(rng.permutation(x.ndim).tolist())
    axis = int(rng.integers(x.ndim))
    index = index_array(rng, 0, x.shape[order[axis]])
    return sample({"x": x, "i": index}, "i", attributes={"p": order, "k": either(rng, axis, x.ndim)})


def _one_place(rng: Rng) -> Sample:
    x = array(rng, *shape_of(rng))
    axis = int(rng.integers(x.ndim))
    index = index_array(rng, -x.shape[axis], x.shape[axis])
    return sample({"x": x, "i": index}, "i", attributes={"k": either(rng, axis, x.ndim)})


RULES = (
    Rule(
        "cancel-split",
        before="y = Concat(*parts, axis=k); *parts = (s_ := Split(x, [s], axis=m))",
        where="front(k, x.rank) == front(m, x.rank)",
        after="y = x",
        sample=_cut,
        shared=("s_",),
        source="TASO: concat of split",
    ),
    Rule(
        "join-neighbours",
        before="y = Concat(*head, a, b, *tail, axis=k);"
        " *before, a, b, *after = (s_ := Split(x, [s], axis=m))",
        where="front(k, x.rank) == front(m, x.rank) and all((*before, *after))"
        " and (head or tail or before or after)",
        after="""
start = sum([part.shape[k] for part in before])
end = start + a.shape[k] + b.shape[k]
both = Slice(x, whole(start), whole(end), whole(front(k, x.rank)), whole(1))
y = Concat(*head, both, *tail, axis=k) if head or tail else both
""",
        sample=_neighbours,
        shared=("s_",),
        source="TASO: concat of split, in part",
    ),
    Rule(
        "cancel-concat",
        before="*ys = Split(c, s, axis=k); c = (j := Concat(*xs, axis=m))",
        where="all(ys) and front(k, c.rank) == front(m, c.rank)"
        " and len(cuts([x.shape[m] for x in xs], [y.shape[k] for y in ys])) > 1",
        after="""
made = []
for (a, b), (d, e) in cuts([x.shape[m] for x in xs], [y.shape[k] for y in ys]):
    run = xs[a] if b == a + 1 else Concat(*xs[a:b], axis=m)
    sizes = [y.shape[k] for y in ys[d:e]]
    made += [run] if e == d + 1 else Split(run, whole(*sizes), outputs=e - d, axis=k)
ys = made
""",
        sample=_cut_join,
        shared=("j",),
        source="TASO: split of concat, whole or in part",
    ),
    Rule(
        "merge-splits",
        before="*head, p, *tail = Split(x, [s], axis=k); *parts = Split(p, [t], axis=m)",
        where="front(k, x.rank) == front(m, x.rank) and all((*head, *parts, *tail))",
        after="""
every = (*head, *parts, *tail)
made = Split(x, whole(*[part.shape[k] for part in every]), outputs=len(every), axis=k)
first, last = len(head), len(head) + len(parts)
head, parts, tail = made[:first], made[first:last], made[last:]
""",
        sample=_cut_twice,
        source="TASO: split of split",
    ),
    Rule(
        "merge-concats",
        before="y = Concat(*head, c, *tail, axis=k); c = (j := Concat(*inner, axis=m))",
        where="front(k, y.rank) == front(m, y.rank)",
        after="y = Concat(*head, *inner, *tail, axis=k)",
        sample=_joined_twice,
        shared=("j",),
        source="TASO: concat of concat",
    ),
    Rule(
        "slice-of-concat",
        before="y = Slice(c, *cut); c = (j := Concat(*head, x, *tail, axis=k))",
        where="inside(window(c.shape, cut), front(k, c.rank),"
        " sum([part.shape[k] for part in head]), x.shape[k])",
        after=f"""
moved = shifted(window(c.shape, cut), front(k, c.rank), -sum([part.shape[k] for part in head]))
y = {_SLICE.format("x", "moved")}
""",
        sample=_slice_of_join,
        shared=("j",),
        source="ONNX Runtime's ConcatSliceElimination, in general",
    ),
    Rule(
        "merge-slices",
        before="y = Slice(c, *cut); c = (i := Slice(x, *first))",
        where="window(c.shape, cut) is not None and window(x.shape, first) is not None",
        after=f"""
merged = windows_merged(window(x.shape, first), window(c.shape, cut))
y = {_SLICE.format("x", "merged")}
""",
        sample=_slices,
        shared=("i",),
        source="a slice of a slice is a slice",
    ),
    Rule(
        "slice-of-split",
        before="y = Slice(a, *cut); *head, a, *tail = (s_ := Split(x, [s], axis=k))",
        where="window(a.shape, cut) is not None and all(head)",
        after=f"""
axis = front(k, x.rank)
whole_part = {{axis: (0, a.shape[axis], 1), **window(a.shape, cut)}}
moved = shifted(whole_part, axis, sum([part.shape[k] for part in head]))
y = {_SLICE.format("x", "moved")}
""",
        sample=_slice_of_part,
        shared=("s_",),
        source="a slice of a part is a slice of the whole",
    ),
    Rule(
        "gather-of-slice",
        before="y = Gather(c, i, axis=k); c = (s := Slice(x, *cut))",
        where="i.elements and list(window(x.shape, cut) or ()) == [front(k, x.rank)]",
        after="""
low, high, step = window(x.shape, cut)[front(k, x.rank)]
places = [low + front(place, c.shape[k]) * step for place in i.elements]
y = Gather(x, indices(shaped(places, i.shape)), axis=k)
""",
        sample=_gather_of_slice,
        shared=("s",),
        source="ONNX Runtime's GatherSliceToSplitFusion, in steps",
    ),
    Rule(
        "gather-of-concat",
        before="y = Gather(c, i, axis=k); c = (j := Concat(*head, x, *tail, axis=m))",
        where="i.elements and front(k, c.rank) == front(m, c.rank) and all([0 <= front(place, c.shape[k])"
        " - sum([part.shape[k] for part in head]) < x.shape[k] for place in i.elements])",
        after="""
start = sum([part.shape[k] for part in head])
places = [front(place, c.shape[k]) - start for place in i.elements]
y = Gather(x, indices(shaped(places, i.shape)), axis=k)
""",
        sample=_gather_of_join,
        shared=("j",),
        source="indices within a single part",
    ),
    Rule(
        "gather-of-split",
        before="y = Gather(a, i, axis=m); *head, a, *tail = (s_ := Split(x, [s], axis=k))",
        where="i.elements and front(k, x.rank) == front(m, x.rank) and all(head)",
        after="""
start = sum([part.shape[k] for part in head])
places = [start + front(place, a.shape[k]) for place in i.elements]
y = Gather(x, indices(shaped(places, i.shape)), axis=m)
""",
        sample=_gather_of_part,
        shared=("s_",),
        source="elements of a part are elements of the whole",
    ),
    Rule(
        "merge-gathers",
        before="y = Gather(c, j, axis=k); c = (g := Gather(x, i, axis=m))",
        where="i.rank == 1 and i.elements and j.elements and front(k, x.rank) == front(m, x.rank)",
        after="y = Gather(x, indices(shaped([i.elements[place] for place in j.elements], j.shape)), axis=k)",
        sample=_gathers,
        shared=("g",),
        source="a gather of a gather is a gather",
    ),
    Rule(
        "gather-of-transpose",
        before="y = Gather(t, i, axis=k); t = (t_ := Transpose(x, perm=p))",
        where="i.rank == 0",
        after="y = Transpose(Gather(x, i, axis=p[k]), perm=without(p, [p[k]]))",
        sample=_gather_of_transpose,
        shared=("t_",),
        source="ONNX Runtime's TransposeOptimizer",
    ),
    Rule(
        "gather-as-slice",
        before="y = Gather(x, i, axis=k)",
        where="i.rank == 0 and i.elements and y.solid",
        after="""
place = front(i.elements[0], x.shape[k])
part = Slice(x, whole(place), whole(place + 1), whole(front(k, x.rank)), whole(1))
y = Reshape(part, whole(*y.shape))
""",
        sample=_one_place,
        source="ONNX Runtime's GatherToSliceFusion",
    ),
)
"""Rules for Split, Concat, Slice and Gather."""
