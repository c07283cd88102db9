"""Models for random rewrites."""

from collections.abc import Mapping

ATTENTION = "layers=1&hidden=32&heads=2"
TEXT = f"{ATTENTION}&sequence=8&vocabulary=64"

PROGRAMS: Mapping[str, tuple[str, ...]] = {
    "squeezenet1_1": ("size=32", "size=64&batch=2"),
    "resnet18": ("size=32",),
    "resnet50": ("size=32",),
    "resnext50": ("size=32",),
    "mobilenet_v3": ("size=32",),
    "efficientnet_b0": ("size=32",),
    "densenet121": ("size=32",),
    "inception_v3": ("size=75",),
    "shufflenet_v2": ("size=32",),
    "convnext_tiny": ("size=32",),
    "preresnet": ("size=32&blocks=1&width=8", "size=32&blocks=2&width=16&batch=2"),
    "drawn_cnn": tuple(f"size=64&seed={seed}" for seed in (101, 102, 103, 104)),
    "drawn_transformer": tuple(f"{TEXT}&seed={seed}" for seed in (101, 102, 103, 104)),
    "drawn_rnn": tuple(f"hidden=16&sequence=3&seed={seed}" for seed in (101, 102)),
    "unet": ("size=32&levels=1&width=4", "size=32&levels=2&width=16", "size=32&levels=1&width=8&batch=2"),
    "vit_b_16": (f"size=32&{ATTENTION}", "size=48&layers=2&hidden=48&heads=3&batch=2"),
    "bert": (TEXT, "layers=2&hidden=64&heads=4&sequence=16&vocabulary=64&batch=2"),
    "distilbert": (TEXT, f"{TEXT}&batch=2"),
    "gpt2": (TEXT, "layers=2&hidden=64&heads=4&sequence=16&vocabulary=64&batch=2"),
    "t5_encoder": (TEXT, f"{TEXT}&batch=2"),
    "deberta": (TEXT, f"{TEXT}&batch=2"),
    "llama": (TEXT, f"{TEXT}&batch=2"),
    "transformer": (TEXT, f"{TEXT}&batch=2"),
    "clip_text": (TEXT, f"{TEXT}&batch=2"),
    "clip_vision": (f"size=64&{ATTENTION}",),
    "whisper_encoder": (f"{ATTENTION}&sequence=8", f"{ATTENTION}&sequence=8&batch=2"),
    "dalle": (f"{TEXT}&grid=2", f"{TEXT}&grid=2&batch=2"),
    "emformer": ("layers=1&hidden=16&heads=2&segments=2&segment=4&right=1&left=4",),
    "lstm": ("layers=1&hidden=32&sequence=3", "layers=2&hidden=16&sequence=4&batch=2"),
    "gru": ("layers=1&hidden=32&sequence=3", "layers=2&hidden=16&sequence=4&batch=2"),
    "nasrnn": ("cells=2&hidden=32", "cells=3&hidden=16&batch=2"),
}
"""Sizes of each family, small enough for numpy."""

HEAVY = frozenset(
    {
        "resnet18",
        "resnet50",
        "resnext50",
        "mobilenet_v3",
        "efficientnet_b0",
        "densenet121",
        "inception_v3",
        "shufflenet_v2",
        "convnext_tiny",
    }
)
"""Families whose models are large in any size, and get fewer sequences."""
