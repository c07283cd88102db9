"""A policy of graph for more rules and operators than it was trained on, with the same choices as before.

A policy knows rules by their traits, and operators by their kind. Traits and kinds that it has not seen
become inputs that it ignores, as inputs that never varied in training. It chooses as before wherever none of
the new rules applies, and knows nothing of these.

    python benchmarks/graph_policy_widened.py OLD.pt NEW.pt --operators quantisation
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import torch
import tyro
from torch import Tensor

from irgym.envs.graph.actions import SPACE
from irgym.envs.graph.observing.observations import CANDIDATE, KINDS, NODE
from irgym.envs.graph.rewriting.traits import columns_of
from irgym.envs.graph.rules.catalogue import RULES

NORMS = ("mean", "variance", "centre", "scale")
"""Statistics of inputs; those of an input that never varied are 0, and then so is the input."""


@dataclass(frozen=True)
class Options:
    """The policies' files, and what the first has not seen."""

    old: Annotated[Path, tyro.conf.Positional]
    """The policy."""
    new: Annotated[Path, tyro.conf.Positional]
    """Where to write the wider one."""
    operators: tuple[str, ...] = ()
    """Modules of `irgym.envs.graph.reference` with operators that it has not seen."""


def widened(values: Tensor, places: Sequence[int], width: int) -> Tensor:
    """Return an array with its last axis widened by zeros.

    Args:
        values: The array; columns from `len(places)` on stay last.
        places: The new place of each of the first columns.
        width: The number of columns in the place of these.
    """
    rest = values.shape[-1] - len(places)
    found = torch.zeros((*values.shape[:-1], width + rest), dtype=values.dtype)
    found[..., list(places)] = values[..., : len(places)]
    if rest:
        found[..., width:] = values[..., len(places) :]
    return found


def places_of(old: Sequence[Any], new: Sequence[Any]) -> list[int]:
    """Return the place of each old column among the new ones."""
    known = {column: place for place, column in enumerate(new)}
    return [known[column] for column in old]


def widen(content: Mapping[str, Any], operators: Sequence[str]) -> dict[str, Any]:
    """Return the content of the wider policy's file.

    Args:
        content: Content of the policy's file.
        operators: Modules with operators that it has not seen.
    """
    names = [kind[0] for kind in content["space"]]
    rules = [rule for rule in RULES if rule.name in names]
    fixed = [name for name in names if name not in {rule.name for rule in rules}]
    assert fixed == [SPACE.kinds[place].name for place in SPACE.fixed], "rules were renamed or removed"
    unseen = {
        name
        for module in operators
        for name in import_module(f"irgym.envs.graph.reference.{module}").OPERATORS
    }
    last = [("size", place) for place in range(NODE - len(KINDS))]
    nodes = places_of([*(kind for kind in KINDS if kind not in unseen), *last], [*KINDS, *last])
    more = [("more", place) for place in range(2)]
    candidates = places_of([*columns_of(rules), *more], [*columns_of(RULES), *more])
    spec = dict(content["encoder"])
    assert (len(nodes), len(candidates)) == (spec["node"], spec["candidate"]), "name all new operators"
    weights = dict(content["weights"])
    for name, places, width in (("node", nodes, NODE), ("candidate", candidates, CANDIDATE)):
        layer = "encoder.inputs.weight" if name == "node" else "encoder.each.0.weight"
        for key in (layer, *(f"encoder.{name}_norm.{part}" for part in NORMS)):
            weights[key] = widened(weights[key], places, width)
    kinds = [[kind.name, *_rest(kind.name, content)] for kind in SPACE.kinds]
    encoder = {**spec, "node": NODE, "candidate": CANDIDATE}
    return {**content, "space": kinds, "encoder": encoder, "weights": weights}


def _rest(name: str, content: Mapping[str, Any]) -> list[Any]:
    """Return what a policy's file holds of a kind besides its name; rules are alike."""
    known = {kind[0]: list(kind[1:]) for kind in content["space"]}
    return known.get(name, known[RULES[0].name])


def main(options: Options) -> None:
    """Write the wider policy."""
    content = torch.load(options.old, weights_only=True)
    torch.save(widen(content, options.operators), options.new)
    print(f"{options.new}: {len(SPACE.kinds)} kinds, {NODE} features of a node, {CANDIDATE} of a candidate")


if __name__ == "__main__":
    main(tyro.cli(Options))
