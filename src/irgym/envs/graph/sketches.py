"""Sketches: random schedules in the style of experts, which apply groups of rules everywhere, in stages.

A stage applies its rules until none matches. Together the stages cover the useful part of ONNX Runtime's
optimiser and go beyond it: packed attention, merged products, recurrences with input products hoisted out of
the steps. The order matters, since a stage may destroy patterns of a later one. The stages of a sketch are
random, since some pay on some models only: fusing sums into normalisations, for instance, slows down most.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from irgym.core.actions import Action, ActionSpace
from irgym.core.task import Task
from irgym.envs.graph.ir.quantised import is_quantised
from irgym.envs.graph.rewriting.rule import Rule
from irgym.envs.graph.rules import (
    activations,
    attention,
    cells,
    convolutions,
    heads,
    integer_products,
    layers,
    layout,
    normalisation,
    products,
    signs,
    stacking,
    winograd,
)
from irgym.envs.graph.state import EVERYWHERE, GraphState

PASSES = 30
"""Limit of how often a stage applies a rule everywhere, since some rules create new sites for long."""

STEPS = 3
"""Fewest steps of an unrolled recurrence."""


def _names(rules: Iterable[Rule], *, without: Sequence[str] = ()) -> tuple[str, ...]:
    return tuple(rule.name for rule in rules if not rule.name.startswith(tuple(without)))


TIDY = (
    "remove-idle",
    "remove-idle-left",
    "share",
    "where-not",
    "softmax-no-nan",
    "softmax-no-mask",
    "softmax-where-mask",
    "softmax-where-mask-else",
    "softmax-sum-masks",
    "hard-sigmoid",
    "hard-swish-clip",
)
"""Rules that remove redundant operators of exporters."""

UNPACK = ("share", "gemm-as-matmul", "view-as-reshape", "remove-idle")
MERGE = ("merge-matmul", "merge-splits", "split-two", "split-binary", "split-down-unary", "cancel-split")
HOIST = (
    "share",
    "reshape-down-matmul",
    "reshape-down-binary",
    "reshape-down-trailing",
    "reshape-down-trailing-left",
    "merge-reshapes",
    "hoist-gather",
    "hoist-slice",
    "hoist-part",
    "hoist-split",
    "hoist-gather-binary",
    "merge-gathers",
    "gather-as-slice",
)
STACK = ("merge-matmul-rows", "merge-concats", "merge-splits", "concat-binary", "cancel-concat")
JOIN = (
    "slice-of-split",
    "join-neighbours",
    "merge-slices",
    "cancel-concat",
    "cancel-split",
    "split-two",
    "split-binary",
    "merge-splits",
)
PACK = ("matmul-as-gemm",)

RECURRENCES = (
    (UNPACK, MERGE, HOIST, JOIN, PACK),
    (UNPACK, HOIST, STACK, JOIN, MERGE, PACK),
    (UNPACK, HOIST, MERGE, JOIN, PACK),
)
"""Stages for unrolled recurrences: hoist input products out of the steps, merge products of one operand."""

CELLS = (
    *_names(cells.RULES),
    *(name for name in _names(layers.RULES) if name.startswith("append-")),
    *(name for name in _names(layers.RULES) if not name.startswith("append-")),
    "merge-splits",
    "merge-concats",
    *_names(stacking.RULES, without=("squeeze-of-split",)),
    "squeeze-of-split",
)
"""Unrolled LSTMs and GRUs into one operator per layer."""

FUSED = ("linear-gemm", "gather-split", "split-hard-swish")
"""Rules that undo others, or destroy their patterns."""

BLOCK_PRODUCTS = ("matmul-transpose-batch", "fused-matmul-transpose-batch")

TRANSFORMERS = (
    *_names(heads.RULES, without=FUSED),
    *_names(products.RULES, without=(*FUSED, *BLOCK_PRODUCTS)),
    *_names(attention.RULES),
    *_names(activations.RULES, without=FUSED),
    *_names(normalisation.RULES, without=("skip-",)),
    "turn-weights",
    "fold-scale",
)
"""Attention, activations and normalisations into ONNX Runtime's fused operators."""

PACKED = ("packed-attention", "causal-packed-attention", "causal-attention")
ATTENTION = (*PACKED, "multi-head-attention", "standard-attention")

SKIPS = tuple(name for name in _names(normalisation.RULES) if name.startswith("skip-"))
"""Sums fused into normalisations, as ONNX Runtime does, though it is slower on most models."""

FOLDED = ("mean-pool", "conv-bn", "conv-mul", "conv-div", "conv-add", "conv-sub")
"""Constants into the weights of convolutions."""

WINOGRAD = (_names(winograd.RULES), ("winograd-4",), ("winograd-2",))
"""Convolutions by Winograd's method, in tiles of both sizes, large ones or small ones."""

FUSED_CONVOLUTIONS = (
    *(name for name in _names(convolutions.RULES) if name.startswith("conv-sum")),
    *_names(convolutions.RULES, without=("conv-sum", "conv-gemm", "mul-conv", "bn-scale", *FOLDED)),
)
"""Sums and activations into convolutions."""

BLOCKS = _names(layout.RULES)
"""Convolutions, and the operators between them, in ONNX Runtime's blocked layout."""

MIXED = ("reorder-gate", "reorder-concat-left", "reorder-concat-right")
"""Rules for blocked operators that ONNX Runtime leaves unblocked, which do not always pay."""

GEMMS = ("linear-gemm",)
"""A product and a bias into one operator."""

UNSIGNED = (
    *_names(signs.RULES, without=("unsigned-pair",)),
    "cancel-requantize",
    "unsigned-pair",
    "skip-requantize",
    "cancel-quantize-dequantize",
    "dequantize-down-move",
    "dequantize-down-split",
    "dequantize-down-concat",
    "quantize-down-move",
    "quantize-down-split",
    "share",
)
"""Signed quantised numbers into unsigned ones, past what is between a product and the next."""

SUMS = "unsigned-qlinear-binary"
"""The rule for sums and products of two quantised arrays."""

SATURATED = ("quantize-relu", "quantize-clip", "relu-dequantize", "cancel-quantize-dequantize")
"""Activations that saturation does already."""

INTEGERS = (
    *(name for name in _names(integer_products.RULES) if name.startswith("merge-")),
    *("merge-splits", "split-binary", "cancel-split"),
)
"""Products of integers with one operand in common into one."""

NUMBERS = ("matmul-integer-to-float", "matmul-integer-to-float-bias", "dynamic-quantize-matmul")
"""Products of integers that become numbers into ONNX Runtime's operators."""

UNFOLDED = ("fold-dequantize",)
"""Weights as numbers instead of integers: more memory, and nothing to convert."""


def stages(recurrent: bool, celled: bool, rng: np.random.Generator) -> list[tuple[str, ...]]:
    """Return the rules of each stage of a random sketch.

    Args:
        recurrent: Whether the model has an unrolled recurrence.
        celled: Whether it has recurrent cells that ONNX has operators for.
        rng: Generator of all random choices.
    """
    found: list[tuple[str, ...]] = [TIDY]
    if celled and rng.random() < 0.6:
        found.append(CELLS)
    elif recurrent and rng.random() < 0.9:
        found += RECURRENCES[int(rng.integers(len(RECURRENCES)))]
    if rng.random() < 0.9:
        left_out = [(), (), PACKED, ATTENTION][int(rng.integers(4))]
        plain = () if rng.random() < 0.75 else ("bias-",)
        found.append(tuple(name for name in TRANSFORMERS if not name.startswith((*left_out, *plain))))
    if rng.random() < 0.2:
        found.append(SKIPS)
    found.append(FOLDED)
    if rng.random() < 0.5:
        found.append(WINOGRAD[int(rng.integers(len(WINOGRAD)))])
    found.append(FUSED_CONVOLUTIONS)
    if rng.random() < 0.9:
        found.append(BLOCKS if rng.random() < 0.7 else tuple(name for name in BLOCKS if name not in MIXED))
    if rng.random() < 0.5:
        found.append(GEMMS)
    if rng.random() < 0.3:
        found = [tuple(name for name in rules if rng.random() < 0.9) for rules in found]
    return found


def quantised_stages(rng: np.random.Generator) -> list[tuple[str, ...]]:
    """Return the rules of the stages of a random sketch that are for quantised numbers."""
    found: list[tuple[str, ...]] = [TIDY]
    # ONNX Runtime may round unsigned sums in another way, and validation may refuse that.
    unsigned = UNSIGNED if rng.random() < 0.7 else tuple(name for name in UNSIGNED if name != SUMS)
    for rules, share in ((unsigned, 0.8), (SATURATED, 0.7), (INTEGERS, 0.7), (NUMBERS, 0.7), (UNFOLDED, 0.2)):
        if rng.random() < share:
            found.append(rules)
    return found


def sketch(task: Task[GraphState], rng: np.random.Generator) -> list[Action]:
    """Return the actions of a random sketch.

    Args:
        task: The task.
        rng: Generator of all random choices.
    """
    kinds = {kind.name: place for place, kind in enumerate(task.space.kinds)}
    bare, _ = closed(task, task.initial(), [kinds[name] for name in (*TIDY, *UNPACK, "reshape-down-matmul")])
    recurrent = _recurrent(task.space, bare)
    state, taken = task.initial(), list[Action]()
    there = {kind for kind, _ in task.mask(state).candidates}
    celled = any(kinds[name] in there for name in _names(cells.RULES))
    chosen: list[tuple[str, ...]] = []
    if any(is_quantised(node) for node in state.graph.nodes.values()):
        chosen = quantised_stages(rng)
    if not chosen or rng.random() < 0.4:
        chosen += stages(recurrent, celled, rng)
    for rules in chosen:
        state, actions = closed(task, state, [kinds[name] for name in rules])
        taken += actions
    ends = [Action(kind) for kind in task.space.fixed if task.mask(state).kinds[kind]]
    return [*taken, ends[-1] if len(ends) > 1 and rng.random() < 0.8 else Action(kinds["stop"])]


def closed(
    task: Task[GraphState], state: GraphState, kinds: Sequence[int]
) -> tuple[GraphState, list[Action]]:
    """Apply rules until none matches; return the final state and the actions."""
    taken: list[Action] = []
    passes: Counter[int] = Counter()
    while True:
        there = dict(task.mask(state).candidates)
        kind = next((kind for kind in kinds if kind in there and passes[kind] < PASSES), None)
        if kind is None:
            return state, taken
        passes[kind] += 1
        taken.append(Action(kind, candidate=there[kind]))  # the last candidate of a kind covers all sites
        state = task.step(state, taken[-1])


def _recurrent(space: ActionSpace, state: GraphState) -> bool:
    """Say whether a value has several parts whose products could be hoisted."""
    counts: Counter[Any] = Counter()
    for (rule, name), sites in state.candidates.items():
        if name != EVERYWHERE and space.kinds[rule + 1].name.startswith("hoist-"):
            counts[sites[0].match.values.get("x")] += 1
    return max(counts.values(), default=0) >= STEPS
