"""Published torch modules in small configurations, with random weights."""

from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import Any

import torch
from torch import nn

from irgym.envs.graph.programs.models.images import declare_operators_that_cannot_be_loaded

Example = Callable[[int], Mapping[str, torch.Tensor]]
"""Returns keyword inputs of a batch size."""

WORDS = 3000
"""Size of vocabularies."""

LENGTH = 48
"""Tokens of a text."""

SIZE = 96
"""Height and width of images."""


def _tokens(batch: int) -> Mapping[str, torch.Tensor]:
    ids = torch.randint(3, WORDS, (batch, LENGTH))
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}


def _drawn(name: str, *shape: int) -> Example:
    return lambda batch: {name: torch.randn(batch, *shape)}


_pixels = _drawn("pixel_values", 3, SIZE, SIZE)

BERT = {
    "hidden_size": 256,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 1024,
    "vocab_size": WORDS,
}
DECODER = {**BERT, "use_cache": False}
GROUPED = {**DECODER, "num_key_value_heads": 2}
PATCHES = {name: value for name, value in BERT.items() if name != "vocab_size"}
VIT = {**PATCHES, "image_size": SIZE, "patch_size": 16}
GPT2 = {"n_embd": 256, "n_layer": 2, "n_head": 4, "vocab_size": WORDS, "use_cache": False}
BART = {
    "d_model": 256,
    "vocab_size": WORDS,
    "use_cache": False,
    **{f"{part}_layers": 2 for part in ("encoder", "decoder")},
    **{f"{part}_attention_heads": 4 for part in ("encoder", "decoder")},
    **{f"{part}_ffn_dim": 1024 for part in ("encoder", "decoder")},
}
WAVES = {**PATCHES, "conv_dim": [96] * 7, "num_conv_pos_embedding_groups": 8}
T5 = {"d_model": 256, "d_ff": 1024, "num_layers": 2, "num_heads": 4, "d_kv": 64, "vocab_size": WORDS}

TRANSFORMERS: dict[str, tuple[str, Mapping[str, Any], Example]] = {
    "bert": ("Bert", BERT, _tokens),
    "roberta": ("Roberta", BERT, _tokens),
    "electra": ("Electra", BERT, _tokens),
    "mpnet": ("MPNet", BERT, _tokens),
    "albert": ("Albert", BERT, _tokens),
    "distilbert": (
        "DistilBert",
        {"dim": 256, "n_layers": 2, "n_heads": 4, "hidden_dim": 1024, "vocab_size": WORDS},
        _tokens,
    ),
    "t5_encoder": ("T5:T5EncoderModel", T5, _tokens),
    "squeezebert": ("SqueezeBert", {**BERT, "embedding_size": 256}, _tokens),
    "convbert": ("ConvBert", {**BERT, "embedding_size": 256}, _tokens),
    "roformer": ("RoFormer", DECODER, _tokens),
    "modernbert": ("ModernBert", {**BERT, "pad_token_id": 0}, _tokens),
    "nomic_bert": ("NomicBert", BERT, _tokens),
    "esm": ("Esm", {**DECODER, "pad_token_id": 1, "mask_token_id": 2}, _tokens),
    "deberta_v2": (
        "DebertaV2",
        {**BERT, "relative_attention": True, "pos_att_type": ["c2p", "p2c"]},
        _tokens,
    ),
    "clip_text": ("CLIPText", {**BERT, "eos_token_id": 2}, _tokens),
    "gpt2": ("GPT2", GPT2, _tokens),
    "opt": ("OPT", {**DECODER, "ffn_dim": 1024, "word_embed_proj_dim": 256}, _tokens),
    "llama": ("Llama", GROUPED, _tokens),
    "qwen2": ("Qwen2", GROUPED, _tokens),
    "gemma2": ("Gemma2", {**GROUPED, "head_dim": 64}, _tokens),
    "olmo2": ("Olmo2", GROUPED, _tokens),
    "phi": ("Phi", DECODER, _tokens),
    "gpt_neox": ("GPTNeoX", DECODER, _tokens),
    "gpt_neo": (
        "GPTNeo",
        {
            "hidden_size": 256,
            "num_layers": 2,
            "num_heads": 4,
            "attention_types": [[["global", "local"], 1]],
            "vocab_size": WORDS,
            "use_cache": False,
        },
        _tokens,
    ),
    "falcon": ("Falcon", DECODER, _tokens),
    "bart": ("Bart", BART, _tokens),
    "vit": ("ViT", VIT, _pixels),
    "deit": ("DeiT", VIT, _pixels),
    "dinov2": ("Dinov2", VIT, _pixels),
    "siglip_vision": ("SiglipVision", VIT, _pixels),
    "resnet": ("ResNet", {"embedding_size": 32, "hidden_sizes": [64, 128, 256, 512]}, _pixels),
    "regnet": ("RegNet", {"hidden_sizes": [64, 128, 256, 512], "depths": [1, 2, 4, 1]}, _pixels),
    "convnext": ("ConvNext", {"depths": [2, 2, 4, 2], "hidden_sizes": [48, 96, 192, 384]}, _pixels),
    "mobilenet_v1": ("MobileNetV1", {"image_size": SIZE, "depth_multiplier": 0.5}, _pixels),
    "mobilenet_v2": ("MobileNetV2", {"image_size": SIZE}, _pixels),
    "wav2vec2": ("Wav2Vec2", WAVES, _drawn("input_values", 4000)),
    "whisper": (
        "Whisper:WhisperForAudioClassification",
        {**BART, "max_source_positions": 64},
        _drawn("input_features", 80, 128),
    ),
    "audio_spectrogram": (
        "AST",
        {**PATCHES, "max_length": 96, "num_mel_bins": 64, "frequency_stride": 16, "time_stride": 16},
        _drawn("input_values", 96, 64),
    ),
    "patchtst": (
        "PatchTST",
        {"num_input_channels": 3, "context_length": 96, "patch_length": 8, "patch_stride": 8},
        _drawn("past_values", 96, 3),
    ),
    "patchtsmixer": (
        "PatchTSMixer",
        {"num_input_channels": 3, "context_length": 96, "d_model": 64},
        _drawn("past_values", 96, 3),
    ),
}
"""Class of transformers, its configuration, and inputs, by name."""


def _of_transformers(name: str) -> tuple[nn.Module, Example]:
    stem, configuration, example = TRANSFORMERS[name]
    family, _, model = stem.partition(":")
    transformers = import_module("transformers")
    config = getattr(transformers, f"{family}Config")(**configuration)
    return getattr(transformers, model or f"{family}Model")(config), example


def _squeezenet() -> tuple[nn.Module, Example]:
    module = import_module("torchvision.models").squeezenet1_1(weights=None)
    return module, _drawn("x", 3, SIZE, SIZE)


def _perceptron() -> tuple[nn.Module, Example]:
    layers = (nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
    return nn.Sequential(*layers), _drawn("input", 784)


def _encoder() -> tuple[nn.Module, Example]:
    layer = nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True)
    return nn.TransformerEncoder(layer, 2), _drawn("src", LENGTH, 256)


def _decoder() -> tuple[nn.Module, Example]:
    layer = nn.TransformerDecoderLayer(256, 4, 1024, batch_first=True, norm_first=True)

    def example(batch: int) -> Mapping[str, torch.Tensor]:
        return {"tgt": torch.randn(batch, 16, 256), "memory": torch.randn(batch, LENGTH, 256)}

    return nn.TransformerDecoder(layer, 2), example


BUILDERS: dict[str, Callable[[], tuple[nn.Module, Example]]] = {
    **{name: partial(_of_transformers, name) for name in TRANSFORMERS},
    "squeezenet": _squeezenet,
    "transformer_encoder": _encoder,
    "transformer_decoder": _decoder,
    "perceptron": _perceptron,
}
"""Builders of modules and their inputs, by name."""


def built(name: str) -> tuple[nn.Module, Example]:
    """Return a module in evaluation mode, with random weights, and its inputs."""
    torch.manual_seed(0)
    declare_operators_that_cannot_be_loaded()  # transformers imports torchvision
    module, example = BUILDERS[name]()
    return module.eval(), example
