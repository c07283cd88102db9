"""Odd changes of attributes and operators in samples."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from fuzz.graph.making.odd import Odd, Rng
from irgym.envs.graph.ir.node import Attribute
from irgym.envs.graph.rewriting.language import CLASSES

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


def changed_attribute(odd: Odd, rng: Rng) -> Odd:
    """Change or remove an attribute."""
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
        both = rng.integers(2) and all(attributes == table for attributes in sample.nodes.values())
        nodes = {
            key: changed if key == owner or both else attributes for key, attributes in sample.nodes.items()
        }
        made = replace(sample, nodes=nodes)
    return replace(odd, sample=made, steps=(*odd.steps, step))


def _changed(value: Attribute, rng: Rng) -> Attribute:
    if isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return int(rng.choice([value + 1, value - 1, -value, -1 - value, 0, 1]))
    if isinstance(value, float):
        return float(rng.choice([0.0, 1.0, -value, 1e25, 1e-25, value * 2]))
    if isinstance(value, tuple) and value and all(isinstance(number, int) for number in value):
        numbers = [int(number) for number in value if isinstance(number, int)]
        if rng.integers(2):
            return tuple(int(number) for number in rng.permutation(numbers))
        place = int(rng.integers(len(numbers)))
        numbers[place] = max(0, numbers[place] + int(rng.choice([-1, 1, 2])))
        return tuple(numbers)
    return value


def more_attributes(odd: Odd, rng: Rng) -> Odd:
    nodes = odd.sample.nodes
    if not nodes:
        return odd
    windows = any(name in WINDOWS for attributes in nodes.values() for name in attributes) or bool(
        rng.integers(2)
    )
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
        kept = {own: value for own, value in attributes.items() if own not in dropped}
        changed[key] = {**kept, name: value}
    step = f"attribute {name} = {value}"
    return replace(odd, sample=replace(odd.sample, nodes=changed), steps=(*odd.steps, step))


def other_operator(odd: Odd, rng: Rng) -> Odd:
    """Replace the operator of a class, if the rule has one."""
    if not odd.sample.operators:
        return odd
    name = str(rng.choice(sorted(odd.sample.operators)))
    now = odd.sample.operators[name]
    groups = [sorted(group) for group in CLASSES.values() if now in group]
    if not groups:
        return odd
    group = groups[int(rng.integers(len(groups)))]
    kind = str(rng.choice(group))
    operators = {key: kind if operator == now else operator for key, operator in odd.sample.operators.items()}
    return replace(
        odd, sample=replace(odd.sample, operators=operators), steps=(*odd.steps, f"operator {kind}")
    )
