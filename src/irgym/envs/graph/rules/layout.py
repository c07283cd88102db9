"""Rules of ONNX Runtime's blocked layout (NCHWc): operators on blocks of channels, and reorders.

A blocked operator stands between a ReorderInput and a ReorderOutput. Other rules move these through what
needs no other layout, until they meet and cancel. Channels that fill up the last block hold anything that is
finite: before they could count, weights that are zero leave them out, or a ReorderOutput cuts them off. What
ONNX Runtime does in one pass (NchwcTransformer) takes several rules here.
"""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from irgym.envs.graph.rewriting.rule import Rule, Sample
from irgym.envs.graph.rules import blocked_samples as blocked
from irgym.envs.graph.rules.endings import ACTIVATIONS, fusing, words

Sampler: TypeAlias = Callable[[np.random.Generator], Sample]

SOURCE = "ONNX Runtime's NchwcTransformer"

BLOCKABLE = f"""(
y.rank == 4 and w.constant and (not b or b.constant) and (
    c.get('group', 1) == 1 and (x.shape[1] < block or x.shape[1] % {blocked.LEAST} == 0)
    or w.shape[1] == 1 and w.shape[0] == c.get('group', 1) and w.shape[0] % {blocked.LEAST} == 0
    or w.shape[1] % block == 0 and w.shape[0] // c.get('group', 1) % block == 0
))"""
"""Condition that ONNX Runtime has a blocked convolution for one that is not."""

BLOCK = """
plain = c.get('group', 1) == 1 and x.shape[1] < block
depthwise = c.get('group', 1) > 1 and w.shape[1] == 1
outputs = -w.shape[0] % block
inputs = 0 if plain or depthwise else -w.shape[1] % block
whole_w = pad(w, (0, 0, 0, 0), (outputs, inputs, 0, 0)) if outputs or inputs else w
whole_b = pad(b, (0,), (outputs,)) if b and outputs else b
more = {**c, 'group': w.shape[0] + outputs} if depthwise else c
whole_x = x if plain else ReorderInput(x)
order = blocked(whole_w, block, 0 if plain or depthwise else 1)
"""
"""Makes the operands of a blocked convolution."""

FROM_BLOCKS = "{r} := ReorderOutput({x}, channels=k, channels_last=0)"
"""Pattern of an operand that was blocked; others may use it too."""


def _exchange(operator: str, follows: str, made: str, sample: Sampler, where: str = "True") -> Rule:
    """Return the rule that moves a ReorderOutput behind an operator.

    Args:
        operator: The operator.
        follows: What follows its operand in the pattern.
        made: What takes its place, of x.
        sample: Samples.
        where: A condition.
    """
    return Rule(
        f"reorder-{words(operator)}",
        before=f"y = (p := {operator}({FROM_BLOCKS.format(r='r', x='x')}{follows}))",
        where=where,
        after=f"y = ReorderOutput({made}, channels=k)",
        sample=sample,
        shared=("r",),
        source=SOURCE,
    )


def _pool(name: str, sample: Sampler, known: str) -> tuple[Rule, Rule]:
    """Return the rules of a pool: in blocks, and on what was in blocks before."""
    blocks = Rule(
        f"block-{words(name)}",
        before=f"y = (p := {name}(x))",
        where=f"x.rank == 4 and x.shape[1] % block == 0 and {known}",
        after=f"y = ReorderOutput(Blocked{name}(ReorderInput(x), **p), channels=x.shape[1])",
        sample=sample,
        source=SOURCE,
    )
    return blocks, _exchange(name, "", f"Blocked{name}(x, **p)", sample, known)


def _pair_rule(name: str, operator: str, sample: Sampler, where: str, after: str, source: str) -> Rule:
    """Return a rule of an operator of two values that were blocked."""
    first, second = FROM_BLOCKS.format(r="r", x="x"), FROM_BLOCKS.format(r="s", x="z")
    return Rule(
        name,
        before=f"y = {operator}({first}, {second})",
        where=where,
        after=after,
        sample=sample,
        shared=("r", "s"),
        source=source,
    )


def _beside(side: str, parts: str, made: str) -> Rule:
    """Return the rule that joins blocks and an array that has none, which is put into blocks.

    Args:
        side: Where the blocks are.
        parts: Pattern of both operands, in their order.
        made: Both operands of the concatenation of blocks.
    """
    return Rule(
        f"reorder-concat-{side}",
        before=f"y = Concat({parts}, axis=axis)",
        where="axis in (1, -3) and r.get('channels_last', 0) == 0 and x.shape[1] == k"
        " and k % block == 0 and z.rank == 4 and z.shape[1] % block == 0",
        after=f"y = ReorderOutput(Concat({made}, axis=1), channels=y.shape[1])",
        sample=blocked.beside,
        shared=("r",),
        source="ONNX Runtime's NchwcTransformer, which leaves such concatenations alone",
    )


RULES = (
    Rule(
        "block-conv",
        before="y = (c := Conv(x, w, [b]))",
        where=BLOCKABLE,
        after=f"{BLOCK}y = ReorderOutput(BlockedConv(whole_x, order, whole_b, **more), channels=w.shape[0])",
        sample=blocked.conv,
        source=SOURCE,
    ),
    Rule(
        "block-fused-conv",
        before="y = (c := FusedConv(x, w, [b], [z]))",
        where=f"(not z or z.shape == y.shape and z.shape[1] % {blocked.LEAST} == 0) and {BLOCKABLE}",
        after=f"""{BLOCK}
added = ReorderInput(z) if z else None
y = ReorderOutput(BlockedConv(whole_x, order, whole_b, added, **more), channels=w.shape[0])
""",
        sample=blocked.fused_conv,
        source=SOURCE,
    ),
    Rule(
        "block-conv-sum",
        before=f"y = (c := FusedConv(x, w, [b], {FROM_BLOCKS.format(r='r', x='z')}))",
        where=f"z.shape[1] == k + -k % block and k == w.shape[0] and {BLOCKABLE}",
        after=f"{BLOCK}y = ReorderOutput(BlockedConv(whole_x, order, whole_b, z, **more), channels=k)",
        sample=blocked.conv_and_blocks,
        shared=("r",),
        source=SOURCE,
    ),
    *_pool("MaxPool", blocked.pooled, "True"),
    # With both, ONNX Runtime's blocked pool counts what lies beyond the padding, too.
    *_pool("AveragePool", blocked.averaged, "not (p.get('ceil_mode', 0) and p.get('count_include_pad', 0))"),
    _exchange("GlobalAveragePool", "", "BlockedGlobalAveragePool(x)", blocked.from_blocks),
    _exchange("GlobalMaxPool", "", "BlockedGlobalMaxPool(x)", blocked.from_blocks),
    Rule(
        "reorder-unary",
        before=f"y = (p := Unary({FROM_BLOCKS.format(r='r', x='x')}, *rest))",
        where=f"p.operator in {blocked.FINITE}",
        after="y = ReorderOutput(Same(p, x, *rest), channels=k)",
        sample=blocked.unary,
        shared=("r",),
        source=SOURCE,
    ),
    *(
        fusing(name, "BlockedConv", "BlockedConv", "blocked-conv", blocked.rest, SOURCE)
        for name in ACTIVATIONS
    ),
    Rule(
        "blocked-conv-sum",
        before="y = Add(c_, z); c_ = (c := BlockedConv(x, w, [b]))",
        where="'activation' not in c and z.shape == y.shape == c_.shape",
        after="y = BlockedConv(x, w, b, z, **c)",
        sample=blocked.blocked_sum,
        source=SOURCE,
    ),
    *(
        _pair_rule(
            f"reorder-{words(name)}",
            name,
            blocked.pair,
            "x.shape == z.shape",
            f"y = ReorderOutput({name}(x, z), channels=k)",
            SOURCE,
        )
        for name in ("Add", "Mul")
    ),
    _pair_rule(
        "reorder-gate",
        "Mul",
        blocked.gated,
        "x.shape[0] == 1 and x.shape[:2] == z.shape[:2] and z.shape[2:] == (1, 1) != x.shape[2:]",
        """
channels = x.shape[1]
y = ReorderOutput(BlockedConv(x, Reshape(z, whole(channels, 1, 1, 1)), group=channels), channels=k)
""",
        "a gate of channels is a depthwise convolution with its values as weights; ONNX Runtime leaves the"
        " layout for it",
    ),
    Rule(
        "reorder-concat",
        before="y = (j := Concat(*parts, axis=axis));"
        " *parts = [ReorderOutput(x, channels_last=0) for x in xs]",
        where="axis in (1, -3)"
        " and all(x.shape == part.shape and x.shape[1] % block == 0 for x, part in zip(xs, parts))",
        after="y = ReorderOutput(Concat(*xs, axis=1), channels=y.shape[1])",
        sample=blocked.parts,
        shared=("parts",),
        source=SOURCE,
    ),
    _beside("left", f"{FROM_BLOCKS.format(r='r', x='x')}, z", "x, ReorderInput(z)"),
    _beside("right", f"z, {FROM_BLOCKS.format(r='r', x='x')}", "ReorderInput(z), x"),
    Rule(
        "reorder-resize",
        before=f"y = (p := Resize({FROM_BLOCKS.format(r='r', x='x')}, [roi], scales, mode='nearest',"
        " coordinate_transformation_mode=coordinates, nearest_mode=rounding))",
        where="(coordinates, rounding) in (('asymmetric', 'floor'), ('half_pixel', 'round_prefer_floor'))"
        " and len(scales.numbers) == 4 and scales.numbers[:2] == (1, 1) and not p.get('axes', ())"
        " and all(one >= 1 and one % 1 == 0 for one in scales.numbers)",
        after="y = ReorderOutput(BlockedUpsample(x, scales=tuple(int(one) for one in scales.numbers),"
        " mode='nearest'), channels=k)",
        sample=blocked.resized,
        shared=("r",),
        source=SOURCE,
    ),
    Rule(
        "reorder-bn",
        before=f"y = BatchNormalization({FROM_BLOCKS.format(r='r', x='x')}, scale, shift, mean, variance,"
        " epsilon=epsilon, training_mode=0)",
        where="scale.constant and shift.constant and mean.constant and variance.constant"
        " and scale.shape == shift.shape == mean.shape == variance.shape == (k,)"
        " and x.shape[1] == k + -k % block",
        after="""
factor = divide(scale, deviation(variance, epsilon))
offset = subtract(shift, multiply(mean, factor))
filled = x.shape[1] - k
w = reshape(pad(factor, (0,), (filled,)), (x.shape[1], 1, 1, 1))
y = ReorderOutput(BlockedConv(x, w, pad(offset, (0,), (filled,)), group=x.shape[1]), channels=k)
""",
        sample=blocked.normal,
        shared=("r",),
        source=SOURCE,
    ),
    Rule(
        "reorder-elimination",
        before="y = ReorderInput(r := ReorderOutput(x, channels=k, channels_last=last), channels_last=last)",
        where="k == x.shape[1]",
        after="y = x",
        sample=blocked.back,
        shared=("r",),
        source=SOURCE,
    ),
    Rule(
        "reorder-round-trip",
        before="y = ReorderOutput(r := ReorderInput(x, channels_last=last), channels=k, channels_last=last)",
        where="k == x.shape[3 if last else 1]",
        after="y = x",
        sample=blocked.reordered,
        shared=("r",),
        source="the same, in the other order",
    ),
    Rule(
        "reorder-conv",
        before="y = (c := BlockedConv(i := ReorderInput("
        f"{FROM_BLOCKS.format(r='r', x='x')}, channels_last=0), w, [b], [z]))",
        where="w.constant and x.shape[1] == k + -k % block and (w.shape[1] == x.shape[1]"
        " if c.get('group', 1) == 1 else w.shape[0] == c['group'] == x.shape[1] and w.shape[1] == 1)",
        after="""
inputs_too = 1 if c.get('group', 1) == 1 else 0
y = BlockedConv(x, without_padding(w, block, k, inputs_too) if k < x.shape[1] else w, b, z, **c)
""",
        sample=blocked.padded,
        shared=("i", "r"),
        source=SOURCE,
    ),
    Rule(
        "reorder-conv-sum",
        before="y = ReorderOutput(c := BlockedConv(x, w, [b], i := ReorderInput("
        f"{FROM_BLOCKS.format(r='r', x='z')}, channels_last=0)), channels=k, channels_last=0)",
        where="z.shape[1] == w.shape[0]",
        after="y = ReorderOutput(BlockedConv(x, w, b, z, **c), channels=k)",
        sample=blocked.padded_sum,
        shared=("i", "r"),
        source=SOURCE,
    ),
    Rule(
        "reorder-transpose",
        before=f"y = Transpose({FROM_BLOCKS.format(r='r', x='x')}, perm=[0, 2, 3, 1])",
        after="y = ReorderOutput(x, channels=k, channels_last=1)",
        sample=blocked.from_blocks,
        shared=("r",),
        source=SOURCE,
    ),
    Rule(
        "transpose-reorder",
        before="y = ReorderInput(t := Transpose(x, perm=[0, 3, 1, 2]), channels_last=0)",
        after="y = ReorderInput(x, channels_last=1)",
        sample=blocked.last,
        shared=("t",),
        source=SOURCE,
    ),
)
"""Rules of ONNX Runtime's blocked layout."""
