"""Faults in convolutions, pools, normalisations of channels and recurrent layers."""

import numpy as np

from fuzz.graph.planting.kinds import Kind

IMAGE = "float[1,4,8,8] x"
CONV = {"w": (4, 4, 3, 3), "b": (4,), "w2": (4, 2, 3, 3), "small": np.full(4, 1e-4, np.float32)}
NORM = {"g": (4,), "c": (4,), "m": (4,), "v": np.array([0.5, 1.0, 2.0, 1e-4], np.float32)}
RNN = "float[5,2,4] x"
LSTM = {"w": (1, 12, 4), "r": (1, 12, 3), "b": (1, 24)}
GRU = {"w": (1, 9, 4), "r": (1, 9, 3), "b": (1, 18)}
SWAPPED = np.random.default_rng(1).standard_normal((1, 12, 4)).astype(np.float32) * 0.5
SWAPPED = SWAPPED[:, [0, 1, 2, 6, 7, 8, 3, 4, 5, 9, 10, 11]]
COUNTED = np.array([2, 5], np.int32)

KINDS = (
    Kind(
        "asymmetric pads swapped",
        IMAGE,
        "y = Conv<kernel_shape=[3,3], pads=[0,1,2,1]>(x, w, b)",
        "y = Conv<kernel_shape=[3,3], pads=[2,1,0,1]>(x, w, b)",
        CONV,
    ),
    Kind(
        "pads and dilation exchanged",
        IMAGE,
        "y = Conv<kernel_shape=[3,3], pads=[2,2,2,2], dilations=[2,2]>(x, w, b)",
        "y = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(x, w, b)",
        CONV,
    ),
    Kind(
        "groups exchanged",
        IMAGE,
        "y = Conv<kernel_shape=[3,3], group=2>(x, w2, b)",
        "h = Gather<axis=1>(x, o) y = Conv<kernel_shape=[3,3], group=2>(h, w2, b)",
        {**CONV, "o": [2, 3, 0, 1]},
    ),
    Kind(
        "a kernel that is turned over",
        IMAGE,
        "y = Conv<kernel_shape=[3,3]>(x, w, b)",
        "t = Transpose<perm=[0,1,3,2]>(x) u = Conv<kernel_shape=[3,3]>(t, w, b) "
        "y = Transpose<perm=[0,1,3,2]>(u)",
        CONV,
    ),
    Kind(
        "SAME_LOWER for SAME_UPPER",
        IMAGE,
        'y = Conv<kernel_shape=[3,3], strides=[2,2], auto_pad="SAME_UPPER">(x, w, b)',
        'y = Conv<kernel_shape=[3,3], strides=[2,2], auto_pad="SAME_LOWER">(x, w, b)',
        CONV,
    ),
    Kind(
        "small bias of a convolution left out",
        IMAGE,
        "y = Conv<kernel_shape=[3,3]>(x, w, small)",
        "y = Conv<kernel_shape=[3,3]>(x, w)",
        CONV,
    ),
    Kind(
        "output padding on the other side",
        IMAGE,
        "y = ConvTranspose<kernel_shape=[3,3], strides=[2,2], pads=[1,1,0,0]>(x, w, b)",
        "y = ConvTranspose<kernel_shape=[3,3], strides=[2,2], pads=[0,0,1,1]>(x, w, b)",
        CONV,
    ),
    Kind(
        "BatchNormalization with another epsilon",
        IMAGE,
        "y = BatchNormalization<epsilon=1e-5>(x, g, c, m, v)",
        "y = BatchNormalization<epsilon=1e-3>(x, g, c, m, v)",
        NORM,
    ),
    Kind(
        "epsilon of BatchNormalization of a small variance",
        IMAGE,
        "y = BatchNormalization<epsilon=1e-5>(x, g, c, m, v)",
        "y = BatchNormalization<epsilon=1e-6>(x, g, c, m, v)",
        NORM,
    ),
    Kind(
        "BatchNormalization whose mean is left out",
        IMAGE,
        "y = BatchNormalization(x, g, c, m, v)",
        "y = BatchNormalization(x, g, c, o, v)",
        {**NORM, "o": np.zeros(4, np.float32)},
    ),
    Kind(
        "InstanceNormalization with another epsilon",
        IMAGE,
        "y = InstanceNormalization<epsilon=1e-5>(x, g, c)",
        "y = InstanceNormalization<epsilon=1e-3>(x, g, c)",
        NORM,
    ),
    Kind(
        "InstanceNormalization over all channels",
        IMAGE,
        "y = InstanceNormalization(x, g, c)",
        "y = GroupNormalization<num_groups=1>(x, g, c)",
        NORM,
    ),
    Kind(
        "GroupNormalization with other groups",
        IMAGE,
        "y = GroupNormalization<num_groups=2>(x, g, c)",
        "y = GroupNormalization<num_groups=4>(x, g, c)",
        NORM,
    ),
    Kind("LRN of another size", IMAGE, "y = LRN<size=3, alpha=0.01>(x)", "y = LRN<size=1, alpha=0.01>(x)"),
    Kind("LRN with bias 2", IMAGE, "y = LRN<size=3, bias=1.0>(x)", "y = LRN<size=3, bias=1.001>(x)"),
    Kind(
        "mean that counts the padding",
        IMAGE,
        "y = AveragePool<kernel_shape=[3,3], pads=[1,1,1,1]>(x)",
        "y = AveragePool<kernel_shape=[3,3], pads=[1,1,1,1], count_include_pad=1>(x)",
    ),
    Kind(
        "last windows by padding for ceil_mode",
        "float[1,1,7,7] x",
        "y = AveragePool<kernel_shape=[2,2], strides=[2,2], ceil_mode=1>(x)",
        "y = AveragePool<kernel_shape=[2,2], strides=[2,2], pads=[0,0,1,1], count_include_pad=1>(x)",
    ),
    Kind("mean for a maximum", IMAGE, "y = GlobalMaxPool(x)", "y = GlobalAveragePool(x)"),
    Kind(
        "MaxPool that takes each second number",
        IMAGE,
        "y = MaxPool<kernel_shape=[2,2], strides=[2,2]>(x)",
        "y = MaxPool<kernel_shape=[1,1], strides=[2,2]>(x)",
    ),
    Kind(
        "indices of MaxPool column by column",
        IMAGE,
        "v, y = MaxPool<kernel_shape=[2,2]>(x)",
        "v, y = MaxPool<kernel_shape=[2,2], storage_order=1>(x)",
        results="int64 y",
    ),
    Kind(
        "norm of a pool without its root",
        IMAGE,
        "y = LpPool<kernel_shape=[2,2], p=2>(x)",
        "y = LpPool<kernel_shape=[2,2], p=1>(x)",
    ),
    Kind(
        "gates of an LSTM in another order",
        RNN,
        "y, h, c = LSTM<hidden_size=3>(x, w, r, b)",
        "y, h, c = LSTM<hidden_size=3>(x, s, r, b)",
        {**LSTM, "s": SWAPPED},
    ),
    Kind(
        "LSTM without its peepholes",
        RNN,
        "y, h, c = LSTM<hidden_size=3>(x, w, r, b, , , , p)",
        "y, h, c = LSTM<hidden_size=3>(x, w, r, b)",
        {**LSTM, "p": (1, 9)},
    ),
    Kind(
        "LSTM from the end",
        RNN,
        "y, h, c = LSTM<hidden_size=3>(x, w, r, b)",
        'y, h, c = LSTM<hidden_size=3, direction="reverse">(x, w, r, b)',
        LSTM,
    ),
    Kind(
        "LSTM that ignores lengths",
        RNN,
        "y, h, c = LSTM<hidden_size=3>(x, w, r, b, n)",
        "y, h, c = LSTM<hidden_size=3>(x, w, r, b)",
        {**LSTM, "n": COUNTED},
    ),
    Kind(
        "GRU with linear_before_reset",
        RNN,
        "y, h = GRU<hidden_size=3, linear_before_reset=1>(x, w, r, b)",
        "y, h = GRU<hidden_size=3>(x, w, r, b)",
        GRU,
    ),
    Kind(
        "RNN with Relu for Tanh",
        RNN,
        "y, h = RNN<hidden_size=3>(x, w, r)",
        'y, h = RNN<hidden_size=3, activations=["Relu"]>(x, w, r)',
        {"w": (1, 3, 4), "r": (1, 3, 3)},
    ),
    Kind(
        "LSTM whose cells are clipped",
        RNN,
        "y, h, c = LSTM<hidden_size=3>(x, w, r, b)",
        "y, h, c = LSTM<hidden_size=3, clip=10.0>(x, w, r, b)",
        LSTM,
    ),
    Kind(
        "Gemm without alpha",
        "float[4,8] x",
        "y = Gemm<alpha=0.9999>(x, w, b)",
        "y = Gemm(x, w, b)",
        {"w": (8, 8), "b": (8,)},
    ),
    Kind(
        "Gemm with beta on the product",
        "float[4,8] x",
        "y = Gemm<beta=0.5>(x, w, b)",
        "h = Gemm(x, w, b) y = Mul(h, half)",
        {"w": (8, 8), "b": (8,), "half": 0.5},
    ),
    Kind(
        "Gemm of a transposed square weight",
        "float[4,8] x",
        "y = Gemm<transB=1>(x, w, b)",
        "y = Gemm(x, w, b)",
        {"w": (8, 8), "b": (8,)},
    ),
    Kind(
        "bounds of an activation after a convolution",
        IMAGE,
        "h = Conv<kernel_shape=[3,3]>(x, w, b) y = Clip(h, lo, hi)",
        "h = Conv<kernel_shape=[3,3]>(x, w, b) y = Relu(h)",
        {**CONV, "lo": 0.0, "hi": 60.0},
    ),
    Kind(
        "a channel of a convolution left out where its weights are small",
        IMAGE,
        "y = Conv<kernel_shape=[1,1]>(x, d)",
        "y = Conv<kernel_shape=[1,1]>(x, f)",
        {
            "d": np.array([1, 1, 1, 1e-3], np.float32).reshape(1, 4, 1, 1),
            "f": np.array([1, 1, 1, 0], np.float32).reshape(1, 4, 1, 1),
        },
    ),
)
"""Kinds of faults."""
