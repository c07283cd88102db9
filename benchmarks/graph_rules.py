"""Verifies each rewrite rule of tensor graphs in float64, on random instances that it makes up itself.

`graph_fuzz.py` tries all rules together, on whole models.

    python benchmarks/graph_rules.py --instances 200
"""

from dataclasses import dataclass

import numpy as np
import tyro

from irgym.envs.graph.actions import RULES
from irgym.envs.graph.rules.rule import Rule
from irgym.envs.graph.rules.verification import error_of, run, verify

BLOCK = 16
"""Channels of a block in the layout of ONNX Runtime's nchwc operators."""


@dataclass(frozen=True)
class Options:
    """What to check."""

    rules: tuple[str, ...] = ()
    """Names of rules; by default all."""
    instances: int = 200
    """Random instances of each rule."""
    seed: int = 0
    """Seed of the first instance."""


def verified(rule: Rule, options: Options) -> float:
    """Verify a rule and return its worst error in float64."""
    worst = 0.0
    for seed in range(options.seed, options.seed + options.instances):
        instance = verify(rule, np.random.default_rng(seed), BLOCK)
        graph = instance.graph
        before = run(graph, instance.feeds, instance.weights, BLOCK)
        for site in rule.sites(graph, graph.nodes[instance.anchor], BLOCK, "float64"):
            after = run(
                graph.rewritten(rule.rewrite(graph, site, BLOCK)), instance.feeds, instance.weights, BLOCK
            )
            worst = max(worst, *(error_of(a, b) for a, b in zip(before, after, strict=True)))
    return worst


def main() -> None:
    options = tyro.cli(Options, description=__doc__)
    print(f"| {'rule':32} | instances | worst error | source |\n|---|---|---|---|")
    for rule in (one for one in RULES if not options.rules or one.name in options.rules):
        error = verified(rule, options)
        print(f"| {rule.name:32} | {options.instances} | {error:.1e} | {rule.source} |", flush=True)


if __name__ == "__main__":
    main()
