"""Models that are odd but right: whatever ONNX allows and exporters write."""

# Models as text are easier to read on one line.
# ruff: noqa: E501

from collections.abc import Callable, Mapping

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper, parser

HEAD = '<ir_version: 10, opset_import: ["" : 20, "com.microsoft" : 1, "own" : 1]>\n'


def text(body: str, head: str = HEAD) -> onnx.ModelProto:
    """Return the model of a text; a name in quotes may hold anything."""
    return parser.parse_model(head + body)


def with_weights(model: onnx.ModelProto, **weights: np.ndarray) -> onnx.ModelProto:
    for name, array in weights.items():
        model.graph.initializer.append(numpy_helper.from_array(np.asarray(array), name))
    return model


def with_a_place(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a model whose first result is multiplied by one, which a rule removes, and negated."""
    graph, first = model.graph, model.graph.output[0]
    graph.node.append(helper.make_node("Mul", [first.name, "unit"], ["same"]))
    graph.node.append(helper.make_node("Neg", ["same"], ["negated"]))
    result = onnx.ValueInfoProto(name="negated")
    result.type.tensor_type.elem_type = first.type.tensor_type.elem_type
    graph.output.append(result)
    scalar = np.ones((), helper.tensor_dtype_to_np_dtype(first.type.tensor_type.elem_type))
    graph.initializer.append(numpy_helper.from_array(scalar, "unit"))
    if model.ir_version < 4:
        graph.input.append(helper.make_tensor_value_info("unit", first.type.tensor_type.elem_type, ()))
    return model


def halved(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a model in float16 in place of float32."""
    single, half = TensorProto.FLOAT, TensorProto.FLOAT16
    for tensor in model.graph.initializer:
        if tensor.data_type == single:
            array = numpy_helper.to_array(tensor).clip(-6e4, 6e4).astype(np.float16)
            tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
    for value in (*model.graph.input, *model.graph.output):
        if value.type.tensor_type.elem_type == single:
            value.type.tensor_type.elem_type = half
    for node in model.graph.node:
        for attribute in node.attribute:
            if node.op_type == "Cast" and attribute.i == single:
                attribute.i = half
    return model


def ramp(*shape: int, dtype: str = "float32") -> np.ndarray:
    """Return numbers that differ, between -1 and 1."""
    return np.random.default_rng(7).uniform(-1, 1, shape).astype(dtype)


def renamed(names: Mapping[str, str]) -> onnx.ModelProto:
    """Return a model whose values have other names."""
    model = text(
        "g (float[2,8] x) => (float[2,4] y) { a = MatMul(x, w) b = Add(a, v) c = Relu(b) y = Add(c, v) }"
    )
    with_weights(model, w=ramp(8, 4), v=ramp(4))
    for part in (*model.graph.input, *model.graph.output, *model.graph.initializer):
        part.name = names.get(part.name, part.name)
    for node in model.graph.node:
        for values in (node.input, node.output):
            values[:] = [names.get(value, value) for value in values]
    return model


def branches() -> onnx.ModelProto:
    """If: both branches use a value from outside, which a rule would like to change."""
    return with_weights(
        text("""g (float[2,8] x, bool c) => (float[2,4] y) {
            a = MatMul(x, w) b = Add(a, v) r = Relu(b)
            s = If (c) <then_branch = g1 () => (float[2,4] t) { t = Neg(r) },
                        else_branch = g2 () => (float[2,4] e) { e = Mul(r, r) }>
            y = Add(s, v) }"""),
        w=ramp(8, 4), v=ramp(4),
    )  # fmt: skip


def loop() -> onnx.ModelProto:
    return with_weights(
        text("""g (float[2,4] x) => (float[2,4] y, float[3,2,4] all) <int64 n = {3}, bool go = {1}> {
            a = Add(x, v) r = Relu(a)
            y, all = Loop (n, go, x) <body = b (int64 i, bool c, float[2,4] h) =>
                (bool d, float[2,4] k, float[2,4] o) { d = Identity(c) k = Add(h, r) o = Mul(k, v) }> }"""),
        v=ramp(4),
    )


def scan() -> onnx.ModelProto:
    return with_weights(
        text("""g (float[3,4] x, float[4] h) => (float[4] last, float[3,4] all) { r = Relu(v)
            last, all = Scan <num_scan_inputs = 1, body = b (float[4] s, float[4] e) =>
                (float[4] t, float[4] o) { t = Add(s, e) o = Mul(t, r) }> (h, x) }"""),
        v=ramp(4),
    )


FUNCTIONS = """
<domain: "own", opset_import: ["" : 20, "own" : 1]>
twice <alpha> (x) => (y) { z = own.once <alpha: float = @alpha> (x) y = own.once <alpha: float = @alpha> (z) }
<domain: "own", opset_import: ["" : 20]>
once <alpha> (x) => (y) { y = LeakyRelu <alpha: float = @alpha> (x) }
"""


def functions() -> onnx.ModelProto:
    return with_weights(
        text(
            "g (float[2,8] x) => (float[2,4] y) { a = MatMul(x, w) y = own.twice <alpha = 0.5> (a) }"
            + FUNCTIONS
        ),
        w=ramp(8, 4),
    )


def old_inputs() -> onnx.ModelProto:
    """The weights are inputs too, as the format's versions up to 3 ask for."""
    model = text("""g (float[2,8] x, float[8,4] w) => (float[2,4] y) { a = MatMul(x, w) y = Relu(a) }""",
                 '<ir_version: 3, opset_import: ["" : 8]>\n')  # fmt: skip
    return with_weights(model, w=ramp(8, 4))


def convolution(opset: int) -> onnx.ModelProto:
    head = f'<ir_version: 6, opset_import: ["" : {opset}]>\n'
    axes = "y = Squeeze <axes = [2, 3]> (p)"
    model = text(f"""g (float[1,3,8,8] x) => (float[1,4] y) {{
        c = Conv <kernel_shape = [3, 3]> (x, w, v) b = BatchNormalization (c, v, v, v, s) r = Relu(b)
        p = GlobalAveragePool(r) {axes} }}""", head)  # fmt: skip
    return with_weights(model, w=ramp(4, 3, 3, 3), v=ramp(4), s=abs(ramp(4)) + 1)


def old_with_others() -> onnx.ModelProto:
    """An old opset, and an operator that onnx's converter does not know."""
    model = text("""g (float[3,3] x) => (float[1,3,3] y) { a = Add(x, w) b = com.microsoft.Inverse(a)
        y = Unsqueeze <axes = [0]> (b) }""",
        '<ir_version: 6, opset_import: ["" : 11, "com.microsoft" : 1]>\n')  # fmt: skip
    return with_weights(model, w=10 * np.eye(3, dtype=np.float32))


def quantised_convolution() -> onnx.ModelProto:
    model = text("""g (uint8[1,3,8,8] x) => (float[1,4,6,6] y) <float s = {0.02}, uint8 z = {128}, float q = {0.1}> {
        c = QLinearConv (x, s, z, w, s, o, q, z) d = DequantizeLinear(c, q, z) y = Relu(d) }""")
    return with_weights(model, w=(ramp(4, 3, 3, 3) * 99).astype(np.int8), o=np.int8(0))


def quantise_and_back() -> onnx.ModelProto:
    model = text("""g (float[2,8] x) => (float[2,4] y) <float s = {0.02}, int8 z = {3}> {
        a = QuantizeLinear(x, s, z) b = DequantizeLinear(a, s, z) w = DequantizeLinear(q, s, z)
        m = MatMul(b, w) r = Relu(m) c = QuantizeLinear(r, s, z) y = DequantizeLinear(c, s, z) }""")
    return with_weights(model, q=(ramp(8, 4) * 99).astype(np.int8))


def dynamically_quantised() -> onnx.ModelProto:
    model = text("""g (float[2,8] x) => (float[2,4] y) <float s = {0.02}, uint8 z = {3}> {
        a, t, o = DynamicQuantizeLinear(x) m = MatMulInteger(a, q, o, z) f = Cast <to = 1> (m)
        u = Mul(t, s) k = Mul(f, u) y = Relu(k) }""")
    return with_weights(model, q=(abs(ramp(8, 4)) * 99).astype(np.uint8))


def trees() -> onnx.ModelProto:
    """No operator of ONNX's own domain, and no version of it either."""
    node = helper.make_node("Scaler", ["x"], ["y"], domain="ai.onnx.ml", offset=[0.5], scale=[2.0])
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, (2, 3)) for name in ("x", "y")]
    graph = helper.make_graph([node], "g", values[:1], values[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("ai.onnx.ml", 3)], ir_version=10)


def elements(kind: str) -> onnx.ModelProto:
    model = text(f"g ({kind}[2,8] x) => ({kind}[2,4] y) {{ a = MatMul(x, w) b = Add(a, v) y = Relu(b) }}")
    dtype = {"float": "float32", "double": "float64"}.get(kind, kind)
    return with_weights(model, w=ramp(8, 4, dtype=dtype), v=ramp(4, dtype=dtype))


def brain_floats() -> onnx.ModelProto:
    """Weights of bfloat16, more than are looked at, that are converted before use."""
    import ml_dtypes

    model = text(
        "g (float[2,64] x) => (float[2,64] y) { f = Cast <to = 1> (w) a = MatMul(x, f) y = Relu(a) }"
    )
    return with_weights(model, w=ramp(64, 64).astype(ml_dtypes.bfloat16))


def plain(body: str, **weights: np.ndarray) -> Callable[[], onnx.ModelProto]:
    return lambda: with_weights(text(body), **weights)


ODD: Mapping[str, Callable[[], onnx.ModelProto]] = {
    "names with blanks": lambda: renamed(
        {"x": "my input", "a": "a + b", "b": "rule@site", "c": "x y z", "w": " w"}
    ),
    "names in other scripts": lambda: renamed(
        {"a": "произведение", "b": "加", "c": "é😀", "w": "ß", "x": "入"}
    ),
    "names with quotes and paths": lambda: renamed(
        {"a": "/l.0/a:0", "b": "'b'", "c": '"c\\', "w": "w\tw", "y": "%6d"}
    ),
    "a long name": lambda: renamed({"a": "a" * 5000, "b": "b"}),
    "names like numbers": lambda: renamed({"x": "0", "a": "1", "b": "2", "c": "3", "w": "4", "y": "5"}),
    "names of actions": lambda: renamed({"a": "stop", "b": "stop+stop", "c": "+", "w": "@"}),
    "an If": branches,
    "a Loop": loop,
    "a Scan": scan,
    "functions": functions,
    "weights as inputs": old_inputs,
    **{f"opset {opset}": (lambda opset=opset: convolution(opset)) for opset in (7, 8, 9, 10, 11, 12)},
    "an old opset with others": old_with_others,
    "QLinearConv": quantised_convolution,
    "QuantizeLinear and back": quantise_and_back,
    "DynamicQuantizeLinear": dynamically_quantised,
    "no opset of ONNX": trees,
    "bfloat16 weights": brain_floats,
    **{kind: (lambda kind=kind: elements(kind)) for kind in ("float", "double", "float16")},
    "an operator of ONNX Runtime": plain(
        "g (float[3,3] x) => (float[3,3] y) { a = Add(x, w) b = com.microsoft.Inverse(a) y = Relu(b) }",
        w=10 * np.eye(3, dtype=np.float32),
    ),
    "sizes that depend on numbers": plain(
        "g (float[2,8] x) => (int64[2,n] y, float[2,8] z) { r = Relu(x) y = NonZero(r) z = Add(r, w) }",
        w=ramp(8),
    ),
    "numbers chosen by a mask": plain(
        "g (float[2,8] x) => (float[n] y) <float o = {0.0}> { p = Greater(x, o) s = Compress(x, p) y = Relu(s) }".replace(
            "Compress(x, p)", "GatherND(x, i)"
        ).replace("s =", "n = NonZero(p) i = Transpose(n) s =")
    ),
    "scalars": plain("g (float x, float z) => (float y) { a = Add(x, z) b = Mul(a, a) y = Relu(b) }"),
    "no elements": plain(
        "g (float[2,8] x) => (float[2,8] y) { c = Concat <axis = 1> (x, e) y = Relu(c) }",
        e=np.zeros((2, 0), np.float32),
    ),
    "no elements at all": plain(
        "g (float[2,8] x) => (float[2,0] y, float[2,8] z) { y = MatMul(x, e) z = Relu(x) }",
        e=np.zeros((8, 0), np.float32),
    ),
    "a weight as a result": plain(
        "g (float[2,4] x) => (float[2,4] y, float[4] w) { y = Add(x, w) }", w=ramp(4)
    ),
    "an input as a result": plain("g (float[2,4] x) => (float[2,4] x, float[2,4] y) { y = Relu(x) }"),
    "an input passed on": plain(
        "g (float[2,4] x) => (float[2,4] y, float[2,4] z) { y = Identity(x) z = Identity(y) }"
    ),
    "a constant result": plain(
        "g (float[2,4] x) => (float[2,4] y, float[4] z) { z = Abs(w) y = Add(x, z) }", w=ramp(4)
    ),
    "an input without use": plain("g (float[2,4] x, int64[3] unused) => (float[2,4] y) { y = Relu(x) }"),
    "a value without use": plain("g (float[2,4] x) => (float[2,4] y) { a = Exp(x) b = Neg(a) y = Relu(x) }"),
    "a result without a name": plain(
        "g (float[1,1,8] x) => (float[1,1,4] y) { none, y, c = LSTM <hidden_size = 4> (x, w, r) }".replace(
            "none", '""'
        ),
        w=ramp(1, 16, 8),
        r=ramp(1, 16, 4),
    ),
    "what is no number": plain(
        "g (float[2,4] x) => (float[2,4] y, float[2,4] z) { y = Add(x, w) a = Max(x, v) z = Relu(a) }",
        w=np.array([1, np.nan, np.inf, -np.inf], np.float32),
        v=np.array([1, -np.inf, 0, -np.inf], np.float32),
    ),
    "Dropout": plain(
        "g (float[2,4] x) => (float[2,4] y) <float p = {0.5}, bool t = {0}> { a, m = Dropout(x, p, t) y = Relu(a) }"
    ),
    "BatchNormalization in training": plain(
        """g (float[2,4,8] x) => (float[2,4,8] y, float[4] m) { c = Conv(x, k, v)
            y, m, n = BatchNormalization <training_mode = 1> (c, v, v, v, s) }""",
        k=ramp(4, 4, 1),
        v=ramp(4),
        s=abs(ramp(4)) + 1,
    ),
    "a table of rows": plain(
        "g (int32[2,3] x) => (float[2,3,4] y) { a = Gather(w, x) y = Relu(a) }", w=ramp(9, 4)
    ),
    "truth values": plain(
        "g (bool[2,4] x) => (float[2,4] y) { a = Cast <to = 1> (x) b = Mul(a, w) y = Relu(b) }", w=ramp(4)
    ),
    "sequences inside": plain(
        """g (float[2,4] x) => (float[2,4] y) <int64 one = {1}> { s = SequenceConstruct(x, x) a = SequenceAt(s, one)
            b = Add(a, w) y = Relu(b) }""",
        w=ramp(4),
    ),
}
