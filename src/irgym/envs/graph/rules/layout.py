"""Rules for ONNX Runtime's blocked layout (NCHWc): operators on blocks of channels, and reorders.

A blocked operator stands between a ReorderInput and a ReorderOutput. Other rules move the reorders past
operators that work in any layout, until two meet and cancel. Padding channels in the last block may hold any
finite number: zero weights or a ReorderOutput remove them before they could affect a result. ONNX Runtime
does all of this in a single pass (NchwcTransformer).
"""

from collections.abc import Callable
from typing import TypeAlias

from irgym.envs.graph.rewriting.rule import Rule, Sample
from irgym.envs.graph.rewriting.samples import blocks
from irgym.envs.graph.rewriting.samples.operands import Rng
from irgym.envs.graph.rewriting.templates import FUSED_ACTIVATIONS, fusing, words

Sampler: TypeAlias = Callable[[Rng], Sample]

SOURCE = "ONNX Runtime's NchwcTransformer"

BLOCKABLE = f"""(
y.rank == 4 and w.constant and (not b or b.constant) and (
    c.get('group', 1) == 1 and (x.shape[1] < block or x.shape[1] % {blocks.CHANNEL_MULTIPLE} == 0)
    or w.shape[1] == 1 and w.shape[0] == c.get('group', 1) and w.shape[0] % {blocks.CHANNEL_MULTIPLE} == 0
    or w.shape[1] % block == 0 and w.shape[0] // c.get('group', 1) % block == 0
))"""
"""Condition that ONNX Runtime has a blocked version of the convolution c."""

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
"""Replacement: the operands of a blocked convolution."""

FROM_BLOCKS = "{r} := ReorderOutput({x}, channels=k, channels_last=0)"
"""Pattern of an operand x that was in blocks; other nodes may use the ReorderOutput r too."""


def _exchange(operator: str, follows: str, made: str, sample: Sampler, where: str = "True") -> Rule:
    """Return the rule that moves a ReorderOutput past an operator.

    Args:
        operator: The operator.
        follows: Pattern of its operands and attributes after the first operand.
        made: The replacement for the operator, applied to x in blocks.
        sample: Samples.
        where: Condition.
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
    """Return two rules for a pool: one that blocks it, and one that moves a ReorderOutput past it."""
    in_blocks = Rule(
        f"block-{words(name)}",
        before=f"y = (p := {name}(x))",
        where=f"x.rank == 4 and x.shape[1] % block == 0 and {known}",
        after=f"y = ReorderOutput(Blocked{name}(ReorderInput(x), **p), channels=x.shape[1])",
        sample=sample,
        source=SOURCE,
    )
    return in_blocks, _exchange(name, "", f"Blocked{name}(x, **p)", sample, known)


def _pair_rule(name: str, operator: str, sample: Sampler, where: str, after: str, source: str) -> Rule:
    """Return a rule for an operator with two operands that were in blocks."""
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
    """Return the rule that concatenates an array in blocks with one that is not, which it puts into blocks.

    Args:
        side: Side of the array in blocks: left or right.
        parts: Pattern of both operands, in order.
        made: Operands of the new concatenation.
    """
    return Rule(
        f"reorder-concat-{side}",
        before=f"y = Concat({parts}, axis=axis)",
        where="axis in (1, -3) and r.get('channels_last', 0) == 0 and x.shape[1] == k"
        " and k % block == 0 and z.rank == 4 and z.shape[1] % block == 0",
        after=f"y = ReorderOutput(Concat({made}, axis=1), channels=y.shape[1])",
        sample=blocks.beside,
        shared=("r",),
        source="ONNX Runtime's NchwcTransformer, which leaves such concatenations alone",
    )


RULES = (
    Rule(
        "block-conv",
        before="y = (c := Conv(x, w, [b]))",
        where=BLOCKABLE,
        after=f"{BLOCK}y = ReorderOutput(BlockedConv(whole_x, order, whole_b, **more), channels=w.shape[0])",
        sample=blocks.conv,
        source=SOURCE,
    ),
    Rule(
        "block-fused-conv",
        before="y = (c := FusedConv(x, w, [b], [z]))",
        where=f"(not z or z.shape == y.shape and z.shape[1] % {blocks.CHANNEL_MULTIPLE} == 0)"
        f" and {BLOCKABLE}",
        after=f"""{BLOCK}
added = ReorderInput(z) if z else None
y = ReorderOutput(BlockedConv(whole_x, order, whole_b, added, **more), channels=w.shape[0])
""",
        sample=blocks.fused_conv,
        source=SOURCE,
    ),
    Rule(
        "block-conv-sum",
        before=f"y = (c := FusedConv(x, w, [b], {FROM_BLOCKS.format(r='r', x='z')}))",
        where=f"z.shape[1] == k + -k % block and k == w.shape[0] and {BLOCKABLE}",
        after=f"{BLOCK}y = ReorderOutput(BlockedConv(whole_x, order, whole_b, z, **more), channels=k)",
        sample=blocks.conv_and_blocks,
        shared=("r",),
        source=SOURCE,
    ),
    *_pool("MaxPool", blocks.pooled, "True"),
    # With both attributes, ONNX Runtime's blocked pool also counts elements beyond the padding.
    *_pool("AveragePool", blocks.averaged, "not (p.get('ceil_mode', 0) and p.get('count_include_pad', 0))"),
    _exchange("GlobalAveragePool", "", "BlockedGlobalAveragePool(x)", blocks.from_blocks),
    _exchange("GlobalMaxPool", "", "BlockedGlobalMaxPool(x)", blocks.from_blocks),
    Rule(
        "reorder-unary",
        before=f"y = (p := Unary({FROM_BLOCKS.format(r='r', x='x')}, *rest))",
        where=f"p.operator in {blocks.FINITE}",
        after="y = ReorderOutput(Same(p, x, *rest), channels=k)",
        sample=blocks.unary,
        shared=("r",),
        source=SOURCE,
    ),
    *(
        fusing(name, "BlockedConv", "BlockedConv", "blocked-conv", blocks.rest, SOURCE)
        for name in FUSED_ACTIVATIONS
    ),
    Rule(
        "blocked-conv-sum",
        before="y = Add(c_, z); c_ = (c := BlockedConv(x, w, [b]))",
        where="'activation' not in c and z.shape == y.shape == c_.shape",
        after="y = BlockedConv(x, w, b, z, **c)",
        sample=blocks.blocked_sum,
        source=SOURCE,
    ),
    *(
        _pair_rule(
            f"reorder-{words(name)}",
            name,
            blocks.pair,
            "x.shape == z.shape",
            f"y = ReorderOutput({name}(x, z), channels=k)",
            SOURCE,
        )
        for name in ("Add", "Mul")
    ),
    _pair_rule(
        "reorder-gate",
        "Mul",
        blocks.gated,
        "x.shape[0] == 1 and x.shape[:2] == z.shape[:2] and z.shape[2:] == (1, 1) != x.shape[2:]",
        """
channels = x.shape[1]
y = ReorderOutput(BlockedConv(x, Reshape(z, whole(channels, 1, 1, 1)), group=channels), channels=k)
""",
        "a factor for each channel is a depthwise convolution with the factors as weights; ONNX Runtime"
        " leaves the blocked layout instead",
    ),
    Rule(
        "reorder-concat",
        before="y = (j := Concat(*parts, axis=axis));"
        " *parts = [ReorderOutput(x, channels_last=0) for x in xs]",
        where="axis in (1, -3)"
        " and all(x.shape == part.shape and x.shape[1] % block == 0 for x, part in zip(xs, parts))",
        after="y = ReorderOutput(Concat(*xs, axis=1), channels=y.shape[1])",
        sample=blocks.parts,
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
        " and all(scale >= 1 and scale % 1 == 0 for scale in scales.numbers)",
        after="y = ReorderOutput(BlockedUpsample(x, scales=tuple(int(scale) for scale in scales.numbers),"
        " mode='nearest'), channels=k)",
        sample=blocks.resized,
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
        sample=blocks.normal,
        shared=("r",),
        source=SOURCE,
    ),
    Rule(
        "reorder-elimination",
        before="y = ReorderInput(r := ReorderOutput(x, channels=k, channels_last=last), channels_last=last)",
        where="k == x.shape[1]",
        after="y = x",
        sample=blocks.back,
        shared=("r",),
        source=SOURCE,
    ),
    Rule(
        "reorder-round-trip",
        before="y = ReorderOutput(r := ReorderInput(x, channels_last=last), channels=k, channels_last=last)",
        where="k == x.shape[3 if last else 1]",
        after="y = x",
        sample=blocks.reordered,
        shared=("r",),
        source="the reverse of a ReorderInput is a ReorderOutput",
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
        sample=blocks.padded,
        shared=("i", "r"),
        source=SOURCE,
    ),
    Rule(
        "reorder-conv-sum",
        before="y = ReorderOutput(c := BlockedConv(x, w, [b], i := ReorderInput("
        f"{FROM_BLOCKS.format(r='r', x='z')}, channels_last=0)), channels=k, channels_last=0)",
        where="z.shape[1] == w.shape[0]",
        after="y = ReorderOutput(BlockedConv(x, w, b, z, **c), channels=k)",
        sample=blocks.padded_sum,
        shared=("i", "r"),
        source=SOURCE,
    ),
    Rule(
        "reorder-transpose",
        before=f"y = Transpose({FROM_BLOCKS.format(r='r', x='x')}, perm=[0, 2, 3, 1])",
        after="y = ReorderOutput(x, channels=k, channels_last=1)",
        sample=blocks.from_blocks,
        shared=("r",),
        source=SOURCE,
    ),
    Rule(
        "transpose-reorder",
        before="y = ReorderInput(t := Transpose(x, perm=[0, 3, 1, 2]), channels_last=0)",
        after="y = ReorderInput(x, channels_last=1)",
        sample=blocks.last,
        shared=("t",),
        source=SOURCE,
    ),
)
"""Rules for ONNX Runtime's blocked layout."""
