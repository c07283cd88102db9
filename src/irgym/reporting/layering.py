"""Layered layout of graphs without circles: Sugiyama, Tagawa and Toda (IEEE Trans. SMC 11(2), 1981).

Every arrow points from a layer to a later one. What goes over several layers has a *bend* in each layer
between, and what goes from one box to many users shares these bends: a *wire*. The order within layers
follows from barycentres; positions are the nearest to what neighbours ask for that leave room for all, found
by pooling adjacent violators (Ayer et al., 1955).
"""

from bisect import bisect_right, insort
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf

SWEEPS = 12
"""Times that the order of all layers is improved, once down and once up each."""

ALIGNMENTS = 4
"""Times that all layers are placed, once up and once down each."""

GAP, BEND = 18.0, 6.0
"""Room between two neighbours in a layer, and width of a bend."""

STRAIGHT = 8.0
"""How much more a bend insists on being in line with another than a box on its place."""


@dataclass(frozen=True)
class Wire:
    """An arrow from a box to one or several users.

    Attributes:
        label: What goes.
        pieces: Pairs of points, each in the layer after the other's: places in `Layout.points`.
    """

    label: str
    pieces: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Layout:
    """Where things are.

    Attributes:
        points: Names of boxes; None for bends.
        layer: Of each point, from 0 at the top.
        x: Middle of each point; the leftmost edge is at 0.
        width: Of the whole.
        layers: Number of layers.
        wires: What goes between boxes.
    """

    points: tuple[str | None, ...]
    layer: tuple[int, ...]
    x: tuple[float, ...]
    width: float
    layers: int
    wires: tuple[Wire, ...]


def layout(widths: Mapping[str, float], arrows: Sequence[tuple[str, str, str]]) -> Layout:
    """Return where boxes are; equal arguments give equal layouts.

    Args:
        widths: Width of each box, by name.
        arrows: Source, target and label of each arrow.

    Raises:
        ValueError: There is a circle.
    """
    names = list(widths)
    place = {name: number for number, name in enumerate(names)}
    links = dict.fromkeys((place[source], place[target]) for source, target, _ in arrows if source != target)
    layer = _layers(len(names), list(links))
    targets: dict[tuple[int, str], list[int]] = {}
    for source, target, label in arrows:
        users = targets.setdefault((place[source], label), [])
        if source != target and place[target] not in users:
            users.append(place[target])
    points: list[str | None] = list(names)
    wires: list[Wire] = []
    for (source, label), users in targets.items():
        wires.append(Wire(label, tuple(_pieces(source, users, layer, points))))
    pieces = list(dict.fromkeys(piece for wire in wires for piece in wire.pieces))
    ordered = _ordered(layer, pieces)
    size = [BEND if name is None else widths[name] for name in points]
    weight = [STRAIGHT if name is None else 1.0 for name in points]
    x = _placed(ordered, pieces, size, weight)
    return Layout(
        tuple(points),
        tuple(layer),
        tuple(x),
        max((middle + width / 2 for middle, width in zip(x, size, strict=True)), default=0.0),
        len(ordered),
        tuple(wires),
    )


def _layers(count: int, links: Sequence[tuple[int, int]]) -> list[int]:
    """Return the layer of each box: the longest way to it, or later where that makes wires shorter."""
    users: list[list[int]] = [[] for _ in range(count)]
    makers: list[list[int]] = [[] for _ in range(count)]
    for source, target in links:
        users[source].append(target)
        makers[target].append(source)
    layer = [0] * count
    missing = [len(some) for some in makers]
    order = [box for box in range(count) if not missing[box]]
    for box in order:
        for user in users[box]:
            layer[user] = max(layer[user], layer[box] + 1)
            missing[user] -= 1
            if not missing[user]:
                order.append(user)
    if len(order) < count:
        raise ValueError("the graph has a circle")
    for box in reversed(order):
        if users[box] and len(makers[box]) <= len(users[box]):
            layer[box] = min(layer[user] for user in users[box]) - 1
    first = min(layer, default=0)
    return [place - first for place in layer]


def _pieces(
    source: int, users: Sequence[int], layer: list[int], points: list[str | None]
) -> list[tuple[int, int]]:
    """Return the pieces of a wire; its bends are added to the layers and the points."""
    pieces: list[tuple[int, int]] = []
    trunk = [source]
    for user in sorted(users, key=lambda user: layer[user]):
        while layer[trunk[-1]] < layer[user] - 1:
            points.append(None)
            layer.append(layer[trunk[-1]] + 1)
            pieces.append((trunk[-1], len(points) - 1))
            trunk.append(len(points) - 1)
        pieces.append((trunk[layer[user] - 1 - layer[source]], user))
    return pieces


def _ordered(layer: Sequence[int], pieces: Sequence[tuple[int, int]]) -> list[list[int]]:
    """Return the points of each layer from left to right, with few crossings."""
    above, below = _neighbours(len(layer), pieces)
    best: list[list[int]] = [[] for _ in range(max(layer, default=-1) + 1)]
    for point in _walk(above, below):
        best[layer[point]].append(point)
    fewest = _crossings(best, below)
    current = best
    for sweep in range(2 * SWEEPS):
        if not fewest:
            break
        current = [list(row) for row in current]
        downward = sweep % 2 == 0
        near = above if downward else below
        rows = range(1, len(current)) if downward else range(len(current) - 2, -1, -1)
        for number in rows:
            fixed = current[number - 1 if downward else number + 1]
            seat = {point: float(place) for place, point in enumerate(fixed)}
            wanted: dict[int, float] = {}
            for place, point in enumerate(current[number]):
                seats = [seat[neighbour] for neighbour in near[point]]
                own = place * len(fixed) / len(current[number])
                wanted[point] = sum(seats) / len(seats) if seats else own
            current[number].sort(key=wanted.__getitem__)
        crossings = _crossings(current, below)
        if crossings < fewest:
            best, fewest = current, crossings
    return best


def _neighbours(count: int, pieces: Sequence[tuple[int, int]]) -> tuple[list[list[int]], list[list[int]]]:
    """Return the points above and below each point that pieces join it with."""
    above: list[list[int]] = [[] for _ in range(count)]
    below: list[list[int]] = [[] for _ in range(count)]
    for source, target in pieces:
        below[source].append(target)
        above[target].append(source)
    return above, below


def _walk(above: Sequence[Sequence[int]], below: Sequence[Sequence[int]]) -> list[int]:
    """Return all points, depth first from those at the top, so that what belongs together stays so."""
    seen: dict[int, None] = {}
    stack = [point for point in range(len(above) - 1, -1, -1) if not above[point]]
    while stack:
        point = stack.pop()
        if point not in seen:
            seen[point] = None
            stack.extend(reversed(below[point]))
    return list(seen)


def _crossings(rows: Sequence[Sequence[int]], below: Sequence[Sequence[int]]) -> int:
    """Return how many pairs of pieces cross."""
    crossings = 0
    for row, following in pairwise(rows):
        seat = {point: place for place, point in enumerate(following)}
        taken: list[int] = []
        for point in row:
            ends = sorted(seat[neighbour] for neighbour in below[point])
            crossings += sum(len(taken) - bisect_right(taken, end) for end in ends)
            for end in ends:
                insort(taken, end)
    return crossings


def _placed(
    rows: Sequence[Sequence[int]],
    pieces: Sequence[tuple[int, int]],
    size: Sequence[float],
    weight: Sequence[float],
) -> list[float]:
    """Return the middle of each point: boxes over and under what they are joined with, bends in line."""
    above, below = _neighbours(len(size), pieces)
    x = [0.0] * len(size)
    for row in rows:
        _settle(row, [0.0] * len(row), [1.0] * len(row), size, x)
    downward = [(number, above) for number in range(len(rows))]
    upward = [(number, below) for number in reversed(range(len(rows)))]
    for number, near in downward + ALIGNMENTS * (upward + downward):
        wanted, insists = list[float](), list[float]()
        for point in rows[number]:
            pull = [weight[neighbour] for neighbour in near[point]]
            at = sum(x[neighbour] * force for neighbour, force in zip(near[point], pull, strict=True))
            wanted.append(at / sum(pull) if pull else x[point])
            insists.append(min(weight[point], max(pull, default=1.0)))
        _settle(rows[number], wanted, insists, size, x)
    _straighten(rows, _chains(above, below, weight), size, x)
    left = min((middle - width / 2 for middle, width in zip(x, size, strict=True)), default=0.0)
    return [middle - left for middle in x]


def _chains(
    above: Sequence[Sequence[int]], below: Sequence[Sequence[int]], weight: Sequence[float]
) -> list[list[int]]:
    """Return points that had best be in one line, from top to bottom, the longest chains first.

    These are the bends of a wire, and boxes that are joined with each other alone.
    """
    following: dict[int, int] = {}
    for point, users in enumerate(below):
        for user in users:
            bends = weight[point] > 1.0 and weight[user] > 1.0
            if bends or (len(users) == 1 and len(above[user]) == 1):
                following[point] = user
    heads = set(following) - set(following.values())
    chains: list[list[int]] = []
    for head in sorted(heads):
        chain = [head]
        while chain[-1] in following:
            chain.append(following[chain[-1]])
        chains.append(chain)
    return sorted(chains, key=len, reverse=True)


def _straighten(
    rows: Sequence[Sequence[int]], chains: Sequence[Sequence[int]], size: Sequence[float], x: list[float]
) -> None:
    """Move the points of chains between their neighbours, so that as many as can be are in one line."""
    beside: dict[int, tuple[int | None, int | None]] = {}
    for row in rows:
        for left, point, right in zip([None, *row[:-1]], row, [*row[1:], None], strict=True):
            beside[point] = left, right
    for chain in chains:
        run, low, high = list[int](), -inf, inf
        for point in (*chain, None):
            least, most = (-inf, inf) if point is None else _room(point, beside[point], size, x)
            if run and (point is None or max(low, least) > min(high, most)):
                at = min(max(sum(x[member] for member in run) / len(run), low), high)
                for member in run:
                    x[member] = at
                run, low, high = [], -inf, inf
            if point is not None:
                run.append(point)
                low, high = max(low, least), min(high, most)


def _room(
    point: int, beside: tuple[int | None, int | None], size: Sequence[float], x: Sequence[float]
) -> tuple[float, float]:
    """Return between which places a point may be, so that its neighbours stay where they are."""
    left, right = beside
    return (
        -inf if left is None else x[left] + (size[left] + size[point]) / 2 + GAP,
        inf if right is None else x[right] - (size[right] + size[point]) / 2 - GAP,
    )


def _settle(
    row: Sequence[int],
    wanted: Sequence[float],
    weight: Sequence[float],
    size: Sequence[float],
    x: list[float],
) -> None:
    """Place a layer's points as near to where they want to be as room allows, by least squares."""
    offsets = [0.0]
    for first, second in pairwise(row):
        offsets.append(offsets[-1] + (size[first] + size[second]) / 2 + GAP)
    pools: list[tuple[float, float, int]] = []  # where they are, how much they insist, how many there are
    for want, heavy, offset in zip(wanted, weight, offsets, strict=False):
        pool = (want - offset, heavy, 1)
        while pools and pools[-1][0] >= pool[0]:
            at, pull, count = pools.pop()
            pull_all = pull + pool[1]
            pool = ((at * pull + pool[0] * pool[1]) / pull_all, pull_all, count + pool[2])
        pools.append(pool)
    places = [at for at, _, count in pools for _ in range(count)]
    for point, at, offset in zip(row, places, offsets, strict=False):
        x[point] = at + offset
