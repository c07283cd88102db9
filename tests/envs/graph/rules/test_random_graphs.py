"""All rules at all sites of random graphs, which contain cases that no sample covers."""

from collections import Counter

import numpy as np
import pytest
from fuzz.graph.making.maker import Maker
from fuzz.graph.making.random_graphs import grown
from small_graphs import BLOCK, sites_of

from irgym.envs.graph.ir.weights import Weights
from irgym.envs.graph.rewriting.verification import run
from irgym.envs.graph.rules.catalogue import RULES


def check(seed: int) -> Counter[str]:
    """Check all sites of a random graph, and return the number of sites of each rule."""
    maker = Maker(np.random.default_rng(seed))
    graph, feeds, weights = grown(maker, 14), maker.feeds(), Weights({})
    expected = run(graph, feeds, weights, BLOCK)
    counts: Counter[str] = Counter()
    for rule in RULES:
        sites = sites_of(rule, graph, "float64")
        assert len({site.name for site in sites}) == len(sites)
        for site in sites:
            after = graph.rewritten(rule.rewrite(graph, site, BLOCK))
            assert after.outputs == graph.outputs
            for wanted, got in zip(expected, run(after, feeds, weights, BLOCK), strict=True):
                assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape), (rule.name, site.name)
                there = ~np.isnan(wanted)  # where it was no number, another order may give infinity
                np.testing.assert_allclose(
                    got[there], wanted[there], 1e-9, 1e-9, err_msg=f"{rule.name}@{site.name}"
                )
        counts[rule.name] += len(sites)
    return counts


@pytest.mark.parametrize("start", range(0, 200, 50))
def test_rules_keep_what_random_graphs_compute(start: int):
    for seed in range(start, start + 50):
        check(seed)
