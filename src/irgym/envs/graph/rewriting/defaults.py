"""Default values of optional attributes, for the attributes that rules name."""

from collections.abc import Mapping

from irgym.envs.graph.ir.node import Attribute

DEFAULTS: Mapping[str, Mapping[str, Attribute]] = {
    "BatchNormalization": {"epsilon": 1e-5, "training_mode": 0},
    "Conv": {"group": 1, "auto_pad": "NOTSET"},
    "Flatten": {"axis": 1},
    "HardSigmoid": {"alpha": 0.2, "beta": 0.5},
    "ReduceMean": {"keepdims": 1, "noop_with_empty_axes": 0},
    "Gather": {"axis": 0},
    "Gelu": {"approximate": "none"},
    "Gemm": {"alpha": 1.0, "beta": 1.0, "transA": 0, "transB": 0},
    "LayerNormalization": {"axis": -1, "epsilon": 1e-5},
    "LeakyRelu": {"alpha": 0.01},
    "MaxPool": {"ceil_mode": 0, "storage_order": 0, "auto_pad": "NOTSET"},
    "AveragePool": {"ceil_mode": 0, "count_include_pad": 0, "auto_pad": "NOTSET"},
    "QLinearConv": {"group": 1, "auto_pad": "NOTSET"},
    "ConvInteger": {"group": 1, "auto_pad": "NOTSET"},
    "Resize": {
        "coordinate_transformation_mode": "half_pixel",
        "mode": "nearest",
        "nearest_mode": "round_prefer_floor",
    },
    "Elu": {"alpha": 1.0},
    "Reshape": {"allowzero": 0},
    "RMSNormalization": {"axis": -1, "epsilon": 1e-5},
    "SimplifiedLayerNormalization": {"axis": -1, "epsilon": 1e-5},
    "Softmax": {"axis": -1},
    "Split": {"axis": 0},
    "ThresholdedRelu": {"alpha": 1.0},
    "com.microsoft.FusedConv": {"group": 1, "auto_pad": "NOTSET"},
    "com.microsoft.FusedMatMul": {"alpha": 1.0, "transA": 0, "transB": 0, "transBatchA": 0, "transBatchB": 0},
    "com.microsoft.MultiHeadAttention": {"unidirectional": 0},
    "com.microsoft.nchwc.Conv": {"group": 1, "auto_pad": "NOTSET"},
    "com.microsoft.nchwc.ReorderInput": {"channels_last": 0},
    "com.microsoft.nchwc.ReorderOutput": {"channels_last": 0},
    "com.microsoft.SkipLayerNormalization": {"epsilon": 1e-12},
    "com.microsoft.SkipSimplifiedLayerNormalization": {"epsilon": 1e-12},
}
"""Defaults by operator and attribute; all other attributes have none."""


def default_of(operator: str, attribute: str) -> Attribute | None:
    """Return the default of an attribute; None if it has none."""
    return DEFAULTS.get(operator, {}).get(attribute)
