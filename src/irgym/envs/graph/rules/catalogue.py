"""All rules of the environment, in named groups."""

from collections.abc import Mapping
from itertools import chain

from irgym.envs.graph.rewriting.rule import Rule
from irgym.envs.graph.rules import (
    activations,
    algebra,
    attention,
    cells,
    convolution_algebra,
    convolutions,
    cutting,
    heads,
    identities,
    integer_products,
    layers,
    layout,
    linear,
    merging,
    movement,
    normalisation,
    pools,
    products,
    quantised,
    recurrence,
    reshaping,
    scaling,
    signs,
    stacking,
    winograd,
)

GROUPS: Mapping[str, tuple[Rule, ...]] = {
    "convolutions": convolutions.RULES,
    "winograd": winograd.RULES,
    "merging": merging.RULES,
    "pools": pools.RULES,
    "layout": layout.RULES,
    "linear": linear.RULES,
    "scaling": scaling.RULES,
    "recurrence": recurrence.RULES,
    "cells": cells.RULES,
    "layers": layers.RULES,
    "stacking": stacking.RULES,
    "identities": identities.RULES,
    "movement": movement.RULES,
    "reshaping": reshaping.RULES,
    "cutting": cutting.RULES,
    "algebra": algebra.RULES,
    "convolution_algebra": convolution_algebra.RULES,
    "heads": heads.RULES,
    "products": products.RULES,
    "attention": attention.RULES,
    "activations": activations.RULES,
    "normalisation": normalisation.RULES,
    "quantised": quantised.RULES,
    "integer_products": integer_products.RULES,
    "signs": signs.RULES,
}
"""Rules by group. A group's name is its module's; the order of the groups is that of the action kinds."""

RULES = tuple(chain.from_iterable(GROUPS.values()))
"""All rules, in the order of the action kinds."""
