"""Pairs of instructions that differ in a single field, in modules that compute both."""

from dataclasses import dataclass

OPERANDS = """  x = f32[4,4]{1,0} parameter(0)
  y = f32[4,4]{1,0} parameter(1)
  v = f32[4]{0} parameter(2)
  i = s32[4]{0} parameter(3)
  k = s32[] parameter(4)
  p = pred[] parameter(5)
  h = f16[4,4]{1,0} parameter(6)
  zero = f32[] constant(0)
  image = f32[1,4,4,4]{3,2,1,0} parameter(7)
  kernel = f32[3,3,4,4]{3,2,1,0} parameter(8)
  state = u64[2]{0} parameter(9)
  c = c64[4,4]{1,0} parameter(10)
  pair = (f32[4,4]{1,0}, f32[4,4]{1,0}) parameter(11)
  column = s32[4,1]{1,0} parameter(12)
  definite = f32[4,4]{1,0} parameter(13)
"""

COMPUTATIONS = """
lt_float {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = pred[] compare(a, b), direction=LT, type=FLOAT
}

lt_total {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = pred[] compare(a, b), direction=LT, type=TOTALORDER
}

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}

sum_marked {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b), frontend_attributes={mark="1"}
}

largest_float {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  c = pred[] compare(a, b), direction=GT, type=FLOAT
  ROOT r = f32[] select(c, a, b)
}

largest_total {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  c = pred[] compare(a, b), direction=GT, type=TOTALORDER
  ROOT r = f32[] select(c, a, b)
}

first_float {
  a = f32[4,4]{1,0} parameter(0)
  b = f32[4,4]{1,0} parameter(1)
  c = pred[4,4]{1,0} compare(a, b), direction=LT, type=FLOAT
  ROOT r = f32[4,4]{1,0} select(c, a, b)
}

first_total {
  a = f32[4,4]{1,0} parameter(0)
  b = f32[4,4]{1,0} parameter(1)
  c = pred[4,4]{1,0} compare(a, b), direction=LT, type=TOTALORDER
  ROOT r = f32[4,4]{1,0} select(c, a, b)
}

branch_float {
  t = (f32[4,4]{1,0}, f32[4,4]{1,0}) parameter(0)
  a = f32[4,4]{1,0} get-tuple-element(t), index=0
  b = f32[4,4]{1,0} get-tuple-element(t), index=1
  c = pred[4,4]{1,0} compare(a, b), direction=LT, type=FLOAT
  ROOT r = f32[4,4]{1,0} select(c, a, b)
}

branch_total {
  t = (f32[4,4]{1,0}, f32[4,4]{1,0}) parameter(0)
  a = f32[4,4]{1,0} get-tuple-element(t), index=0
  b = f32[4,4]{1,0} get-tuple-element(t), index=1
  c = pred[4,4]{1,0} compare(a, b), direction=LT, type=TOTALORDER
  ROOT r = f32[4,4]{1,0} select(c, a, b)
}

second {
  t = (f32[4,4]{1,0}, f32[4,4]{1,0}) parameter(0)
  ROOT b = f32[4,4]{1,0} get-tuple-element(t), index=1
}
"""

ZEROS = {"bf16": ("0", "-0.0"), "f64": ("0", "-0.0"), "c64": ("(0, 0)", "(0, -0.0)")}
"""Zeros of types, and those that XLA takes for equal."""


def _with_constant(name: str, operation: str, constant: str) -> str:
    """Return a computation on the sum of two numbers and a constant, an instruction."""
    return f"""
{name} {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  s = f32[] add(a, b)
  c = f32[] {constant}
  ROOT r = f32[] {operation}(s, c)
}}
"""


def _dividing(name: str, kind: str, zero: str) -> str:
    """Return a computation that divides by a number of a type."""
    part = "imag" if kind == "c64" else "convert"
    return f"""
{name} {{
  a = f32[4,4]{{1,0}} parameter(0)
  b = f32[4,4]{{1,0}} parameter(1)
  zero = {kind}[] constant({zero})
  part = f32[] {part}(zero)
  whole = f32[4,4]{{1,0}} broadcast(part), dimensions={{}}
  s = f32[4,4]{{1,0}} add(a, b)
  ROOT r = f32[4,4]{{1,0}} divide(s, whole)
}}
"""


for _name, _operation, _constant in (
    ("sum_zero", "add", "constant(0)"),
    ("sum_minus_zero", "add", "constant(-0.0)"),
    ("at_least_three", "maximum", "constant(3)"),
    ("at_least_labelled_three", "maximum", 'constant(3), frontend_attributes={mark="1"}'),
):
    COMPUTATIONS += _with_constant(_name, _operation, _constant)
for _kind, (_zero, _minus) in ZEROS.items():
    COMPUTATIONS += _dividing(f"zero_{_kind}", _kind, _zero) + _dividing(f"minus_zero_{_kind}", _kind, _minus)

GATHER = (
    "f32[4,4]{1,0} gather(x, column), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, "
    "index_vector_dim=1, slice_sizes={1,4}"
)
SCATTER = (
    "f32[4,4]{1,0} scatter(x, column, y), update_window_dims={1}, inserted_window_dims={0}, "
    "scatter_dims_to_operand_dims={0}, index_vector_dim=1"
)
CONVOLUTION = "f32[1,4,4,4]{3,2,1,0} convolution(image, kernel), window={size=3x3 pad=1_1x1_1}"
CUSTOM = "f32[4,4]{1,0} custom-call(x)"
SOLVE = "f32[4,4]{1,0} triangular-solve(definite, x)"


@dataclass(frozen=True)
class Pair:
    """Two instructions that must not be merged.

    Attributes:
        name: What they differ in.
        first: Shape, operation and attributes of the first.
        second: Those of the other.
    """

    name: str
    first: str
    second: str

    @property
    def module(self) -> str:
        """HLO text of a module that returns both."""
        shapes = [_shape(text) for text in (self.first, self.second)]
        return (
            f"HloModule pair\n{COMPUTATIONS}\nENTRY main {{\n{OPERANDS}"
            f"  one = {self.first}\n  other = {self.second}\n"
            f"  ROOT both = ({shapes[0]}, {shapes[1]}) tuple(one, other)\n}}\n"
        )


def _shape(text: str) -> str:
    """Return the shape at the start of an instruction; tuples contain spaces."""
    return text[: text.index(")") + 1] if text.startswith("(") else text.partition(" ")[0]


def with_attribute(name: str, text: str, first: str, second: str) -> Pair:
    """Return a pair of instructions with two values of an attribute; an empty value means no attribute."""
    return Pair(name, *(f"{text}, {value}" if value else text for value in (first, second)))


COMPARE = "pred[4,4]{1,0} compare(x, y)"

PAIRS = (
    with_attribute("compare: type", f"{COMPARE}, direction=LT", "type=FLOAT", "type=TOTALORDER"),
    with_attribute("compare: direction", COMPARE, "direction=LT", "direction=GT"),
    with_attribute("compare: equality's type", f"{COMPARE}, direction=EQ", "", "type=TOTALORDER"),
    with_attribute(
        "sort: comparator's type",
        "f32[4]{0} sort(v), dimensions={0}",
        "to_apply=lt_float",
        "to_apply=lt_total",
    ),
    with_attribute(
        "sort: stability", "f32[4]{0} sort(v), dimensions={0}, to_apply=lt_float", "", "is_stable=true"
    ),
    with_attribute(
        "sort: dimension", "f32[4,4]{1,0} sort(x), to_apply=lt_float", "dimensions={0}", "dimensions={1}"
    ),
    with_attribute(
        "reduce: type within",
        "f32[4]{0} reduce(x, zero), dimensions={0}",
        "to_apply=largest_float",
        "to_apply=largest_total",
    ),
    with_attribute(
        "reduce: dimension", "f32[4]{0} reduce(x, zero), to_apply=sum", "dimensions={0}", "dimensions={1}"
    ),
    with_attribute(
        "reduce: attribute within",
        "f32[4]{0} reduce(x, zero), dimensions={0}",
        "to_apply=sum",
        "to_apply=sum_marked",
    ),
    with_attribute(
        "reduce: zero within",
        "f32[4]{0} reduce(x, zero), dimensions={0}",
        "to_apply=sum_zero",
        "to_apply=sum_minus_zero",
    ),
    with_attribute(
        "reduce: label of a constant within",
        "f32[4]{0} reduce(x, zero), dimensions={0}",
        "to_apply=at_least_three",
        "to_apply=at_least_labelled_three",
    ),
    *(
        with_attribute(
            f"call: sign of a zero of {name} within",
            "f32[4,4]{1,0} call(x, y)",
            f"to_apply=zero_{name}",
            f"to_apply=minus_zero_{name}",
        )
        for name in ZEROS
    ),
    with_attribute(
        "call: type within", "f32[4,4]{1,0} call(x, y)", "to_apply=first_float", "to_apply=first_total"
    ),
    with_attribute(
        "map: type within",
        "f32[4,4]{1,0} map(x, y), dimensions={0,1}",
        "to_apply=largest_float",
        "to_apply=largest_total",
    ),
    with_attribute(
        "reduce-window: type within",
        "f32[2,2]{1,0} reduce-window(x, zero), window={size=2x2 stride=2x2}",
        "to_apply=largest_float",
        "to_apply=largest_total",
    ),
    with_attribute(
        "reduce-window: padding",
        "f32[2,2]{1,0} reduce-window(x, zero), to_apply=sum",
        "window={size=2x2 stride=2x2}",
        "window={size=2x2 stride=3x3 pad=1_0x1_0}",
    ),
    with_attribute(
        "reduce-window: dilation",
        "f32[2,2]{1,0} reduce-window(x, zero), to_apply=sum",
        "window={size=3x3}",
        "window={size=2x2 rhs_dilate=2x2}",
    ),
    with_attribute(
        "select-and-scatter: type within",
        "f32[4,4]{1,0} select-and-scatter(x, y, zero), window={size=1x1}, scatter=sum",
        "select=lt_float",
        "select=lt_total",
    ),
    with_attribute("scatter: type within", SCATTER, "to_apply=largest_float", "to_apply=largest_total"),
    with_attribute("scatter: unique indices", f"{SCATTER}, to_apply=sum", "", "unique_indices=true"),
    with_attribute("scatter: sorted indices", f"{SCATTER}, to_apply=sum", "", "indices_are_sorted=true"),
    with_attribute("gather: sorted indices", GATHER, "", "indices_are_sorted=true"),
    Pair(
        "gather: slice sizes",
        GATHER,
        GATHER.replace("slice_sizes={1,4}", "slice_sizes={1,3}").replace(
            "f32[4,4]{1,0} gather", "f32[4,3]{1,0} gather"
        ),
    ),
    Pair("gather: index map", GATHER, GATHER.replace("start_index_map={0}", "start_index_map={1}")),
    Pair(
        "gather: dimensions of a slice",
        GATHER,
        GATHER.replace("offset_dims={1}", "offset_dims={0}"),
    ),
    Pair(
        "scatter: index map",
        f"{SCATTER}, to_apply=sum",
        f"{SCATTER}, to_apply=sum".replace("operand_dims={0}", "operand_dims={1}"),
    ),
    Pair(
        "scatter: dimensions of a window",
        f"{SCATTER}, to_apply=sum",
        f"{SCATTER}, to_apply=sum".replace("update_window_dims={1}", "update_window_dims={0}"),
    ),
    with_attribute(
        "call: composite",
        'f32[4,4]{1,0} call(x, y), to_apply=first_float, frontend_attributes={composite.name="a"}',
        "",
        "is_composite=true",
    ),
    with_attribute(
        "conditional: type within",
        "f32[4,4]{1,0} conditional(p, pair, pair), false_computation=second",
        "true_computation=branch_float",
        "true_computation=branch_total",
    ),
    with_attribute(
        "dot: precision",
        "f32[4,4]{1,0} dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        "",
        "operand_precision={highest,highest}",
    ),
    with_attribute(
        "dot: algorithm",
        "f32[4,4]{1,0} dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        "",
        "algorithm=dot_bf16_bf16_f32",
    ),
    with_attribute(
        "dot: contraction",
        "f32[4,4]{1,0} dot(x, y), lhs_contracting_dims={1}",
        "rhs_contracting_dims={0}",
        "rhs_contracting_dims={1}",
    ),
    with_attribute(
        "convolution: precision",
        f"{CONVOLUTION}, dim_labels=b01f_01io->b01f",
        "",
        "operand_precision={high,high}",
    ),
    with_attribute(
        "convolution: labels", CONVOLUTION, "dim_labels=b01f_01io->b01f", "dim_labels=b01f_01oi->b01f"
    ),
    with_attribute(
        "convolution: window",
        "f32[1,4,4,4]{3,2,1,0} convolution(image, kernel), dim_labels=b01f_01io->b01f",
        "window={size=3x3 pad=1_1x1_1}",
        "window={size=3x3 pad=1_1x1_1 rhs_reversal=1x1}",
    ),
    with_attribute(
        "exponential: accuracy", "f32[4,4]{1,0} exponential(x)", "", "result_accuracy={mode=highest}"
    ),
    with_attribute(
        "tanh: accuracy",
        "f32[4,4]{1,0} tanh(x)",
        "",
        "result_accuracy={tolerance={atol=0.5,rtol=0.5,ulps=2}}",
    ),
    with_attribute(
        "sine: frontend attributes", "f32[4,4]{1,0} sine(x)", "", 'frontend_attributes={mark="1"}'
    ),
    with_attribute(
        "add: frontend attributes",
        "f32[4,4]{1,0} add(x, y)",
        'frontend_attributes={mark="2"}',
        'frontend_attributes={mark="1"}',
    ),
    with_attribute("add: sharding", "f32[4,4]{1,0} add(x, y)", "", "sharding={replicated}"),
    with_attribute(
        "add: other sharding",
        "f32[4,4]{1,0} add(x, y)",
        "sharding={replicated}",
        "sharding={maximal device=0}",
    ),
    with_attribute("add: backend's configuration", "f32[4,4]{1,0} add(x, y)", "", 'backend_config="a"'),
    Pair("add: layout", "f32[4,4]{1,0} add(x, y)", "f32[4,4]{0,1} add(x, y)"),
    Pair("add: memory space", "f32[4,4]{1,0} add(x, y)", "f32[4,4]{1,0:S(1)} add(x, y)"),
    Pair("add: tiles", "f32[4,4]{1,0} add(x, y)", "f32[4,4]{1,0:T(2,2)} add(x, y)"),
    with_attribute("add: control dependencies", "f32[4,4]{1,0} add(x, y)", "", "control-predecessors={x}"),
    Pair("convert: type", "s8[4,4]{1,0} convert(x)", "u8[4,4]{1,0} convert(x)"),
    with_attribute(
        "reduce-precision: mantissa",
        "f32[4,4]{1,0} reduce-precision(x), exponent_bits=8",
        "mantissa_bits=7",
        "mantissa_bits=8",
    ),
    with_attribute(
        "reduce-precision: exponent",
        "f32[4,4]{1,0} reduce-precision(x), mantissa_bits=7",
        "exponent_bits=8",
        "exponent_bits=5",
    ),
    with_attribute("broadcast: dimensions", "f32[4,4]{1,0} broadcast(v)", "dimensions={0}", "dimensions={1}"),
    with_attribute(
        "transpose: dimensions",
        "f32[1,4,4,4]{3,2,1,0} transpose(image)",
        "dimensions={0,2,1,3}",
        "dimensions={0,3,2,1}",
    ),
    with_attribute("reverse: dimensions", "f32[4,4]{1,0} reverse(x)", "dimensions={0}", "dimensions={1}"),
    with_attribute(
        "concatenate: sharding",
        "f32[8,4]{1,0} concatenate(x, y), dimensions={0}",
        "",
        "sharding={replicated}",
    ),
    with_attribute("pad: padding", "f32[6,4]{1,0} pad(x, zero)", "padding=1_1x0_0", "padding=2_0x0_0"),
    with_attribute("slice: start", "f32[2,4]{1,0} slice(x)", "slice={[0:2], [0:4]}", "slice={[1:3], [0:4]}"),
    with_attribute(
        "slice: stride", "f32[2,4]{1,0} slice(x)", "slice={[0:2], [0:4]}", "slice={[0:3:2], [0:4]}"
    ),
    with_attribute(
        "dynamic-slice: frontend attributes",
        "f32[1,4]{1,0} dynamic-slice(x, k, k), dynamic_slice_sizes={1,4}",
        "",
        'frontend_attributes={mark="1"}',
    ),
    with_attribute("get-tuple-element: index", "f32[4,4]{1,0} get-tuple-element(pair)", "index=1", "index=0"),
    with_attribute(
        "get-tuple-element: sharding",
        "f32[4,4]{1,0} get-tuple-element(pair), index=0",
        "",
        "sharding={replicated}",
    ),
    with_attribute(
        "iota: frontend attributes",
        "f32[4,4]{1,0} iota(), iota_dimension=0",
        "",
        'frontend_attributes={mark="1"}',
    ),
    with_attribute("iota: dimension", "f32[4,4]{1,0} iota()", "iota_dimension=0", "iota_dimension=1"),
    Pair("iota: layout", "f32[4,4]{1,0} iota(), iota_dimension=0", "f32[4,4]{0,1} iota(), iota_dimension=0"),
    Pair("constant: sign of zero", "f32[2]{0} constant({0, 3})", "f32[2]{0} constant({-0.0, 3})"),
    Pair("constant: NaN's payload", "f32[2]{0} constant({nan, 1})", "f32[2]{0} constant({nan(0x400001), 1})"),
    with_attribute("constant: sharding", "f32[2]{0} constant({0, 1})", "", "sharding={replicated}"),
    with_attribute(
        "constant: frontend attributes", "f32[] constant(3)", "", 'frontend_attributes={mark="1"}'
    ),
    Pair(
        "constant: layout",
        "f32[2,2]{1,0} constant({{0, 1}, {2, 3}})",
        "f32[2,2]{0,1} constant({{0, 1}, {2, 3}})",
    ),
    with_attribute("fft: type", "c64[4,4]{1,0} fft(c), fft_length={4}", "fft_type=FFT", "fft_type=IFFT"),
    with_attribute("cholesky: half", "f32[4,4]{1,0} cholesky(definite)", "lower=true", "lower=false"),
    with_attribute(
        "triangular-solve: half",
        f"{SOLVE}, left_side=true, transpose_a=NO_TRANSPOSE",
        "lower=true",
        "lower=false",
    ),
    with_attribute(
        "triangular-solve: side",
        f"{SOLVE}, lower=true, transpose_a=NO_TRANSPOSE",
        "left_side=true",
        "left_side=false",
    ),
    with_attribute(
        "triangular-solve: transposition",
        f"{SOLVE}, left_side=true, lower=true",
        "transpose_a=NO_TRANSPOSE",
        "transpose_a=TRANSPOSE",
    ),
    with_attribute(
        "triangular-solve: unit diagonal",
        f"{SOLVE}, left_side=true, lower=true, transpose_a=NO_TRANSPOSE",
        "",
        "unit_diagonal=true",
    ),
    with_attribute(
        "batch-norm-inference: epsilon",
        "f32[4,4]{1,0} batch-norm-inference(x, v, v, v, v), feature_index=1",
        "epsilon=0.1",
        "epsilon=0.2",
    ),
    with_attribute(
        "batch-norm-inference: feature",
        "f32[4,4]{1,0} batch-norm-inference(x, v, v, v, v), epsilon=0.1",
        "feature_index=0",
        "feature_index=1",
    ),
    with_attribute(
        "rng-bit-generator: algorithm",
        "(u64[2]{0}, u32[4]{0}) rng-bit-generator(state)",
        "algorithm=rng_default",
        "algorithm=rng_three_fry",
    ),
    with_attribute(
        "topk: largest", "(f32[4,2]{1,0}, s32[4,2]{1,0}) topk(x), k=2", "largest=true", "largest=false"
    ),
    with_attribute("custom-call: target", CUSTOM, 'custom_call_target="a"', 'custom_call_target="b"'),
    with_attribute(
        "custom-call: configuration",
        f'{CUSTOM}, custom_call_target="a"',
        'backend_config="1"',
        'backend_config="2"',
    ),
    with_attribute(
        "custom-call: version",
        f'{CUSTOM}, custom_call_target="a"',
        "",
        "api_version=API_VERSION_STATUS_RETURNING",
    ),
    with_attribute(
        "custom-call: side effect",
        f'{CUSTOM}, custom_call_target="a"',
        "",
        "custom_call_has_side_effect=true",
    ),
    with_attribute(
        "custom-call: schedule", f'{CUSTOM}, custom_call_target="a"', "", "schedule=SCHEDULE_EARLIEST"
    ),
    with_attribute(
        "custom-call: operands' layouts",
        f'{CUSTOM}, custom_call_target="a"',
        "operand_layout_constraints={f32[4,4]{1,0}}",
        "operand_layout_constraints={f32[4,4]{0,1}}",
    ),
    with_attribute(
        "custom-call: aliasing",
        f'{CUSTOM}, custom_call_target="a"',
        "",
        "output_to_operand_aliasing={{}: (0, {})}",
    ),
    with_attribute(
        "custom-call: precision", f'{CUSTOM}, custom_call_target="a"', "", "operand_precision={highest}"
    ),
    with_attribute(
        "custom-call: frontend attributes",
        f'{CUSTOM}, custom_call_target="a"',
        "",
        'frontend_attributes={mark="1"}',
    ),
    with_attribute(
        "all-reduce: groups",
        "f32[4,4]{1,0} all-reduce(x), to_apply=sum",
        "replica_groups={}",
        "replica_groups={{0}}",
    ),
    with_attribute(
        "all-reduce: channel",
        "f32[4,4]{1,0} all-reduce(x), to_apply=sum, replica_groups={}",
        "channel_id=1",
        "channel_id=2",
    ),
    with_attribute(
        "all-reduce: global ids",
        "f32[4,4]{1,0} all-reduce(x), to_apply=sum, replica_groups={{0}}, channel_id=1",
        "",
        "use_global_device_ids=true",
    ),
    with_attribute(
        "collective-permute: pairs",
        "f32[4,4]{1,0} collective-permute(x)",
        "source_target_pairs={{0,0}}",
        "source_target_pairs={{0,1},{1,0}}",
    ),
)
"""Pairs for every field in which two instructions with the same operands may differ."""
