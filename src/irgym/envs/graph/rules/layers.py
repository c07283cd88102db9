"""Rules that merge consecutive recurrent layers: the second continues from the state of the first.

A layer of one step is merged with the next layer, of any number of steps. A layer that was merged before has
concatenated inputs and split results; the next layer is appended to it. There are several rules because a
pattern determines which values between the layers are needed elsewhere: in `quiet` rules the state of the
first layer is not, and in `last` rules the memory of the second is not.
"""

from collections.abc import Callable
from itertools import product
from typing import Any

from irgym.envs.graph.rewriting.rule import Rule, Sample
from irgym.envs.graph.rewriting.samples.operands import Rng, array, parts_of, pick, sample

_SOURCE = "steps of one recurrent layer"

_FITS = (
    "o is None and l.alike(m) and m.get('direction', 'forward') == 'forward'"
    " and not set(m) - {'direction', 'hidden_size', 'input_forget', 'layout', 'linear_before_reset'}"
    " and not m.get('layout', 0) and not m.get('input_forget', 0)"
    " and p.shape[0] == 1 and h.shape == p.shape[2:]"
)
# With a single step and an initial state of zero, the weights of the state do not matter.
_SAME_WEIGHTS = " and r.constant and u.constant and (s is None or r.weight.digest == u.weight.digest)"

_AFTER = """
made = Same(m, Concat({inputs}, x, axis=0), w, r, b, None, {states}, outputs={outputs})
parts = Split(made[0], whole(*[part.shape[0] for part in ({parts}, y)]), outputs={count}, axis=0)
y = parts[-1]
"""


def _merged(kind: str, append: bool, quiet: bool, last: bool) -> Rule:
    """Return the rule for two layers of the same kind.

    Args:
        kind: LSTM or GRU.
        append: Whether the first layer was merged before.
        quiet: Whether only the second layer uses the state of the first.
        last: Whether the memory of the second layer is unused; a GRU has none.
    """
    lstm = kind == "LSTM"
    results = "y, _, c" if lstm and not last else "y"
    memory = ", Unsqueeze(Squeeze(d, i), a)" if lstm else ""
    first = "q" if append else "p"
    inputs, weights = ("Concat(*vs, axis=0)", "r") if append else ("v", "u")
    starts = "[s], [t]" if lstm else "[s]"
    before = f"""
{results} = (m := {kind}(x, w, r, [b], [o], Unsqueeze(h, a){memory})); h = Squeeze(p, [f])
{"*qs, p = Split(q, [n], axis=0)" if append else ""}
{first}{", _, d" if lstm else ""} = (l := {kind}({inputs}, w, {weights}, [b], [o], {starts}))
"""
    after = _AFTER.format(
        inputs="*vs" if append else "v",
        states="s, t" if lstm else "s",
        outputs=3 if lstm and not last else 1,
        parts="*qs, p" if append else "p",
        count="len(qs) + 2" if append else 2,
    )
    after += "qs = parts[:-2]\n" if append else ""
    after += "" if quiet else "h = Squeeze(parts[-2], whole(0, 1))\n"
    after += "c = made[2]\n" if lstm and not last else ""
    name = f"{'append' if append else 'merge'}-{kind.lower()}{'-last' * last}{'-quiet' * quiet}"
    where = _FITS + (" and all(qs)" if append else _SAME_WEIGHTS)
    return Rule(name, before, after, _sampled(4 if lstm else 3, append), where, source=_SOURCE)


def _sampled(gates: int, append: bool) -> Callable[[Rng], Sample]:
    """Return samples of two layers, for cells with a number of gates: 4 for an LSTM, 3 for a GRU."""

    def sampled(rng: Rng) -> Sample:
        batch, inputs, hidden = (int(size) for size in rng.integers(1, 5, 3))
        rows = gates * hidden
        state_weights = array(rng, 1, rows, hidden)
        state = pick(rng, None, array(rng, 1, batch, hidden))
        memory = pick(rng, None, array(rng, 1, batch, hidden)) if gates == 4 else None
        attributes: dict[str, Any] = {"hidden_size": hidden}
        attributes |= {} if gates == 4 else {"linear_before_reset": int(rng.integers(2))}
        steps = parts_of(rng)
        values: dict[str, Any] = {
            "x": array(rng, int(rng.integers(1, 4)), batch, inputs),
            "w": array(rng, 1, rows, inputs),
            "r": state_weights,
            "b": pick(rng, None, array(rng, 1, 2 * rows)),
            "o": None,
            "s": state,
            "t": memory,
            "a": [0],
            "i": [0],
            "f": [0, 1],
            "v": array(rng, 1, batch, inputs),
            "u": array(rng, 1, rows, hidden) if state is None else state_weights,
            "vs": [array(rng, size, batch, inputs) for size in (*steps, 1)],
            "n": [*steps, 1],
        }
        counts = {"qs": len(steps)} if append else {}
        nodes = {"l": attributes, "m": attributes}
        return sample(values, "w r b u a i f n", nodes=nodes, counts=counts)

    return sampled


RULES = tuple(
    _merged(kind, append, quiet, last)
    for kind, append, quiet, last in product(("LSTM", "GRU"), (True, False), (False, True), (False, True))
    if kind == "LSTM" or not last
)
"""Rules for recurrent layers."""
