"""Faults in operators that move, choose, sort or count numbers."""

import numpy as np

from graph_planting.kinds import Kind

X = "float[4,8] x"
SQUARE = "float[8,8] x"
TABLE = {"t": (9, 8)}
BOXES = "float[1,6,4] b, float[1,2,6] s"
NMS = {"n": [3], "iou": 0.5, "score": 0.2, "iou2": 0.45, "score2": 0.0}

KINDS = (
    Kind("transpose of a square matrix left out", SQUARE, "t = Transpose(x) y = MatMul(t, w)", "y = MatMul(x, w)", {"w": (8, 8)}),
    Kind("reshape in place of a transpose", "float[2,4,4] x", "y = Transpose<perm=[0,2,1]>(x)", "y = Reshape(x, s)", {"s": [2, 4, 4]}),
    Kind("Concat in the other order", "float[4,8] a, float[4,8] b", "y = Concat<axis=0>(a, b)", "y = Concat<axis=0>(b, a)"),
    Kind("Split with its parts exchanged", "float[4,8] x", "a, b = Split<axis=1, num_outputs=2>(x) y = Sub(a, b)", "a, b = Split<axis=1, num_outputs=2>(x) y = Sub(b, a)"),
    Kind("inclusive for exclusive CumSum", X, "y = CumSum<exclusive=1>(x, k)", "y = CumSum(x, k)", {"k": np.array(1, np.int64)}),
    Kind("CumSum from the other end", X, "y = CumSum<reverse=1>(x, k)", "y = CumSum(x, k)", {"k": np.array(1, np.int64)}),
    Kind("ArgMax that takes the last of equals", X, "y = ArgMax<axis=1>(x)", "y = ArgMax<axis=1, select_last_index=1>(x)", results="int64 y"),
    Kind("ArgMin that takes the last of equals", X, "y = ArgMin<axis=0>(x)", "y = ArgMin<axis=0, select_last_index=1>(x)", results="int64 y"),
    Kind("ArgMax of equals after a Relu", X, "r = Relu(x) y = ArgMax<axis=1>(r)", "r = Relu(x) y = ArgMax<axis=1, select_last_index=1>(r)", results="int64 y"),
    Kind("ArgMax of magnitudes", X, "y = ArgMax<axis=1>(x)", "m = Abs(x) y = ArgMax<axis=1>(m)", results="int64 y"),
    Kind("TopK of equals by the later index", "float[4,8] x", "v, y = TopK(x, k)", "r = Gather<axis=1>(x, back) v, i = TopK(r, k) y = Sub(seven, i)", {"k": [3], "back": list(range(7, -1, -1)), "seven": np.array(7, np.int64)}, results="int64 y"),
    Kind("TopK of the least", X, "y, i = TopK(x, k)", "y, i = TopK<largest=0>(x, k)", {"k": [3]}),
    Kind("TopK of one fewer, padded", X, "y, i = TopK(x, k)", "v, i = TopK(x, l) y = Concat<axis=1>(v, v)", {"k": [4], "l": [2]}),
    Kind("Gather that clips negative indices", "int64[5] i", "y = Gather(t, i)", "j = Max(i, zero) y = Gather(t, j)", {**TABLE, "zero": np.array(0, np.int64)}),
    Kind("GatherND that clips negative indices", "int64[5,1] i", "y = GatherND(t, i)", "j = Max(i, zero) y = GatherND(t, j)", {**TABLE, "zero": np.array(0, np.int64)}),
    Kind("GatherElements along another axis", "int64[8,8] i", "y = GatherElements<axis=0>(t, i)", "y = GatherElements<axis=1>(t, i)", {"t": (8, 8)}),
    Kind("Gather of the last row as the one before", "int64[5] i", "y = Gather(t, i)", "j = Min(i, seven) y = Gather(t, j)", {**TABLE, "seven": np.array(7, np.int64)}),
    Kind("ScatterElements that replaces for one that adds", "float[8] x, int64[6] i, float[6] u", 'y = ScatterElements<reduction="add">(x, i, u)', "y = ScatterElements(x, i, u)"),
    Kind("ScatterND with maximum for sum at duplicates", "float[8] x, int64[6,1] i, float[6] u", 'y = ScatterND<reduction="add">(x, i, u)', 'y = ScatterND<reduction="max">(x, i, u)'),
    Kind("OneHot of a negative index as nothing", "int64[6] i", "y = OneHot(i, d, v)", "e = Unsqueeze(i, last) q = Equal(e, r) y = Cast<to=1>(q)", {"d": np.array(5, np.int64), "v": np.array([0, 1], np.float32), "last": [-1], "r": list(range(5))}),
    Kind("Trilu with another diagonal", SQUARE, "y = Trilu<upper=0>(x, k)", "y = Trilu<upper=0>(x, l)", {"k": np.array(0, np.int64), "l": np.array(1, np.int64)}),
    Kind("NonZero in another order", "bool[4,8] x", "y = NonZero(x)", "t = Transpose(x) n = NonZero(t) a, b = Split<num_outputs=2>(n) y = Concat<axis=0>(b, a)", results="int64 y"),
    Kind("NonZero of positive numbers alone", X, "r = Round(x) y = NonZero(r)", "r = Round(x) p = Relu(r) y = NonZero(p)", results="int64 y"),
    Kind("NonMaxSuppression with another overlap", BOXES, "y = NonMaxSuppression(b, s, n, iou, score)", "y = NonMaxSuppression(b, s, n, iou3, score)", {**NMS, "iou3": 0.05}, results="int64 y"),
    Kind("NonMaxSuppression without its least score", BOXES, "y = NonMaxSuppression(b, s, n, iou, score)", "y = NonMaxSuppression(b, s, n, iou, score2)", NMS, results="int64 y"),
    Kind("NonMaxSuppression of boxes by their centres", BOXES, "y = NonMaxSuppression(b, s, n, iou3, score)", "y = NonMaxSuppression<center_point_box=1>(b, s, n, iou3, score)", {**NMS, "iou3": 0.05}, results="int64 y"),
    Kind("mean over an axis that is as long", SQUARE, "y = ReduceMean<keepdims=0>(x, k)", "y = ReduceMean<keepdims=0>(x, l)", {"k": [0], "l": [1]}),
    Kind("L1 for a sum", X, "y = ReduceSum(x, k)", "y = ReduceL1(x, k)", {"k": [1]}),
    Kind("product without its zeros", X, "y = ReduceProd(x, k)", "z = Equal(x, zero) o = Where(z, one, x) y = ReduceProd(o, k)", {"k": [1], "zero": 0.0, "one": 1.0}),
    Kind("keepdims that lets a bias broadcast otherwise", SQUARE, "m = ReduceMax<keepdims=1>(x, k) y = Sub(x, m)", "m = ReduceMax<keepdims=0>(x, k) y = Sub(x, m)", {"k": [1]}),
    Kind("a row that is broadcast as a column", SQUARE, "y = Add(x, r)", "y = Add(x, c)", {"r": np.arange(8, dtype=np.float32).reshape(1, 8), "c": np.arange(8, dtype=np.float32).reshape(8, 1)}),
    Kind("slice from the other end", SQUARE, "y = Slice(x, a, b, k)", "y = Slice(x, c, d, k)", {"a": [0], "b": [4], "c": [4], "d": [8], "k": [1]}),
    Kind("padding by reflection for edges", SQUARE, 'y = Pad<mode="edge">(x, p)', 'y = Pad<mode="reflect">(x, p)', {"p": [1, 1, 1, 1]}),
    Kind("padding with 0 before a maximum of negatives", "float[1,1,8,8] x", "y = MaxPool<kernel_shape=[3,3], pads=[1,1,1,1]>(x)", "p = Pad(x, pads) y = MaxPool<kernel_shape=[3,3]>(p)", {"pads": [0, 0, 1, 1, 0, 0, 1, 1]}),
    Kind("DepthToSpace in the other order", "float[1,8,3,3] x", 'y = DepthToSpace<blocksize=2, mode="CRD">(x)', 'y = DepthToSpace<blocksize=2, mode="DCR">(x)'),
    Kind("Resize that rounds the other way", "float[1,1,5,5] x", 'y = Resize<mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="round_prefer_floor">(x, , s)', 'y = Resize<mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="round_prefer_ceil">(x, , s)', {"s": np.array([1, 1, 2, 2], np.float32)}),
    Kind("Resize with other coordinates", "float[1,1,5,5] x", 'y = Resize<mode="linear", coordinate_transformation_mode="half_pixel">(x, , s)', 'y = Resize<mode="linear", coordinate_transformation_mode="align_corners">(x, , s)', {"s": np.array([1, 1, 2, 2], np.float32)}),
    Kind("Resize cubic with another coefficient", "float[1,1,5,5] x", 'y = Resize<mode="cubic", cubic_coeff_a=-0.75>(x, , s)', 'y = Resize<mode="cubic", cubic_coeff_a=-0.5>(x, , s)', {"s": np.array([1, 1, 2, 2], np.float32)}),
    Kind("Einsum with its sum over another index", "float[4,4] a, float[4,4] b", 'y = Einsum<equation="ij,jk->ik">(a, b)', 'y = Einsum<equation="ij,kj->ik">(a, b)'),
    Kind("ReverseSequence over the whole length", "float[8,4] x", "y = ReverseSequence<time_axis=0, batch_axis=1>(x, n)", "y = ReverseSequence<time_axis=0, batch_axis=1>(x, all)", {"n": [8, 7, 5, 8], "all": [8, 8, 8, 8]}),
    Kind("Compress without its last row", "float[4,8] x", "y = Compress<axis=0>(x, c)", "y = Compress<axis=0>(x, d)", {"c": np.array([1, 0, 1, 1], bool), "d": np.array([1, 1, 1, 0], bool)}),
    Kind("Unique without its counts of ties", X, "y, i, j, n = Unique(x)", "r = Identity(x) f = Reshape(r, flat) v, k = TopK(f, all) y = Neg(v)", {"flat": [-1], "all": [32]}),
    Kind("padding token counted", "int64[2,6] i", "g = Gather(t, i) q = Equal(i, zero) n = Not(q) c = Cast<to=1>(n) u = Unsqueeze(c, last) y = Mul(g, u)", "g = Gather(t, i) y = Identity(g)", {**TABLE, "zero": np.array(0, np.int64), "last": [-1]}),
)
"""Kinds of faults."""
