"""Models of torchvision, with random weights."""

# The types of torch are incomplete.
# pyright: reportUnknownMemberType=false

from functools import cache
from importlib import import_module
from typing import Any

import torch

from irgym.envs.graph.programs.models.model import Builder, Model, Options, images
from irgym.measure.torchvision_library import refusal

_OPERATORS = ("nms", "qnms")
_NAMES = {
    "resnet18": "resnet18",
    "resnet50": "resnet50",
    "resnext50": "resnext50_32x4d",
    "squeezenet1_1": "squeezenet1_1",
    "mobilenet_v3": "mobilenet_v3_large",
    "densenet121": "densenet121",
    "efficientnet_b0": "efficientnet_b0",
    "shufflenet_v2": "shufflenet_v2_x1_0",
    "convnext_tiny": "convnext_tiny",
}


@cache
def declare_operators_that_cannot_be_loaded() -> object:
    """Declare torchvision's compiled operators where its library does not load.

    PyPI's torchvision is linked against CUDA. Beside a torch for CPUs its library cannot be loaded, and then
    `import torchvision` fails, for it registers shapes of operators that nobody has declared. Models that
    classify images call none of them. transformers imports torchvision too.

    Returns:
        What must be kept as long as the operators are to stay declared; None where nothing was.
    """
    if not refusal():
        return None
    declared = torch.library.Library("torchvision", "FRAGMENT")
    for name in _OPERATORS:
        declared.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    return declared


def _models() -> Any:
    declare_operators_that_cannot_be_loaded()
    return import_module("torchvision.models")


def _named(name: str) -> Builder:
    def build(options: Options) -> Model:
        return Model(getattr(_models(), name)(weights=None), {"image": images(options)})

    return build


def inception_v3(options: Options) -> Model:
    """Return Inception v3 without its auxiliary classifier, which is for training."""
    module = _models().inception_v3(weights=None, aux_logits=False, init_weights=False)
    return Model(module, {"image": images(options)})


def vit_b_16(options: Options) -> Model:
    """Return a Vision Transformer with patches of 16."""
    module = _models().VisionTransformer(
        image_size=options["size"],
        patch_size=16,
        num_layers=options["layers"],
        num_heads=options["heads"],
        hidden_dim=options["hidden"],
        mlp_dim=4 * options["hidden"],
    )
    return Model(module, {"image": images(options)})


BUILDERS: dict[str, Builder] = {
    **{family: _named(name) for family, name in _NAMES.items()},
    "inception_v3": inception_v3,
    "vit_b_16": vit_b_16,
}
"""Builders of the families' models."""
