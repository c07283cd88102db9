"""Models of transformers, with random weights: built from configurations, so that nothing is downloaded."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

import torch
from torch import Tensor, nn

from irgym.envs.graph.programs.models.images import declare_operators_that_cannot_be_loaded
from irgym.envs.graph.programs.models.model import Builder, Model, Options, images, tokens


class Result(nn.Module):
    """A model of transformers that takes tensors and returns one, as those write it who export it.

    Args:
        model: The model.
        names: The names of its arguments.
        result: Which of its results.
    """

    def __init__(self, model: nn.Module, names: tuple[str, ...], result: str) -> None:
        super().__init__()
        self.model, self.names, self.result = model, names, result

    def forward(self, *arguments: Tensor) -> Tensor:
        """Return the result."""
        return getattr(self.model(**dict(zip(self.names, arguments, strict=True))), self.result)


def _transformers() -> Any:
    declare_operators_that_cannot_be_loaded()
    return import_module("transformers")


def _common(options: Options) -> dict[str, Any]:
    """Return what most configurations call depth, width and heads."""
    return {
        "hidden_size": options["hidden"],
        "num_hidden_layers": options["layers"],
        "num_attention_heads": options["heads"],
        "intermediate_size": 4 * options["hidden"],
    }


def _special(options: Options) -> dict[str, Any]:
    """Return the numbers of the tokens that begin and end a text and fill it up."""
    last = options["vocabulary"] - 1
    return {"bos_token_id": last - 1, "eos_token_id": last, "pad_token_id": 0}


def _masked(model: nn.Module, options: Options) -> Model:
    """Return a model that takes tokens and a mask, 0 for those that only fill up."""
    ids = tokens(options)
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    ranges = {"input_ids": (0, options["vocabulary"]), "attention_mask": (0, 2)}
    return Model(Result(model, tuple(inputs), "last_hidden_state"), inputs, ranges)


def bert(options: Options) -> Model:
    """Return BERT without its pooling."""
    of = _transformers()
    config = of.BertConfig(
        **_common(options),
        vocab_size=options["vocabulary"],
        max_position_embeddings=options["sequence"],
    )
    return _masked(of.BertModel(config, add_pooling_layer=False), options)


def distilbert(options: Options) -> Model:
    """Return DistilBERT."""
    of = _transformers()
    config = of.DistilBertConfig(
        vocab_size=options["vocabulary"],
        max_position_embeddings=options["sequence"],
        dim=options["hidden"],
        hidden_dim=4 * options["hidden"],
        n_layers=options["layers"],
        n_heads=options["heads"],
    )
    return _masked(of.DistilBertModel(config), options)


def gpt2(options: Options) -> Model:
    """Return GPT-2 with its language head and no cache: logits of a whole prompt."""
    of = _transformers()
    config = of.GPT2Config(
        vocab_size=options["vocabulary"],
        n_positions=options["sequence"],
        n_embd=options["hidden"],
        n_layer=options["layers"],
        n_head=options["heads"],
        use_cache=False,
        **_special(options),
    )
    module = Result(of.GPT2LMHeadModel(config), ("input_ids",), "logits")
    return Model(module, {"input_ids": tokens(options)}, {"input_ids": (0, options["vocabulary"])})


def t5_encoder(options: Options) -> Model:
    """Return T5's encoder."""
    of = _transformers()
    config = of.T5Config(
        vocab_size=options["vocabulary"],
        d_model=options["hidden"],
        d_kv=options["hidden"] // options["heads"],
        d_ff=4 * options["hidden"],
        num_layers=options["layers"],
        num_heads=options["heads"],
    )
    # torch's exporter fails on the other one, which reshapes what is not contiguous.
    config._attn_implementation = "eager"
    return _masked(of.T5EncoderModel(config), options)


def deberta(options: Options) -> Model:
    """Return DeBERTa v2 as v3 is published: disentangled attention, positions in buckets, shared keys."""
    of = _transformers()
    config = of.DebertaV2Config(
        **_common(options),
        vocab_size=options["vocabulary"],
        max_position_embeddings=max(options["sequence"], 64),
        relative_attention=True,
        position_buckets=32,
        pos_att_type=["p2c", "c2p"],
        norm_rel_ebd="layer_norm",
        share_att_key=True,
        position_biased_input=False,
        type_vocab_size=0,
    )
    return _masked(of.DebertaV2Model(config), options)


def llama(options: Options) -> Model:
    """Return Llama without its language head and no cache: the vectors of a whole prompt."""
    of = _transformers()
    config = of.LlamaConfig(
        **_common(options),
        vocab_size=options["vocabulary"],
        max_position_embeddings=options["sequence"],
        use_cache=False,
        **_special(options),
    )
    module = Result(of.LlamaModel(config), ("input_ids",), "last_hidden_state")
    return Model(module, {"input_ids": tokens(options)}, {"input_ids": (0, options["vocabulary"])})


def whisper_encoder(options: Options) -> Model:
    """Return Whisper's encoder: two convolutions over frames of 80 frequencies, then a transformer."""
    of = _transformers()
    config = of.WhisperConfig(
        d_model=options["hidden"],
        encoder_layers=options["layers"],
        encoder_attention_heads=options["heads"],
        encoder_ffn_dim=4 * options["hidden"],
        max_source_positions=options["sequence"],
        num_mel_bins=80,
    )
    frames = torch.randn(options["batch"], 80, 2 * options["sequence"])
    encoder = import_module("transformers.models.whisper.modeling_whisper").WhisperEncoder(config)
    module = Result(encoder, ("input_features",), "last_hidden_state")
    return Model(module, {"input_features": frames})


def clip_text(options: Options) -> Model:
    """Return CLIP's text tower."""
    of = _transformers()
    config = of.CLIPTextConfig(
        **_common(options),
        vocab_size=options["vocabulary"],
        max_position_embeddings=options["sequence"],
        **_special(options),
    )
    return _masked(of.CLIPTextModel(config), options)


def clip_vision(options: Options) -> Model:
    """Return CLIP's image tower."""
    of = _transformers()
    config = of.CLIPVisionConfig(**_common(options), image_size=options["size"], patch_size=32)
    module = Result(of.CLIPVisionModel(config), ("pixel_values",), "pooler_output")
    return Model(module, {"pixel_values": images(options)})


_ALL: tuple[Callable[[Options], Model], ...] = (
    bert,
    distilbert,
    gpt2,
    t5_encoder,
    deberta,
    llama,
    whisper_encoder,
    clip_text,
    clip_vision,
)

BUILDERS: dict[str, Builder] = {builder.__name__: builder for builder in _ALL}
"""Builders of the families' models."""
