"""The families of models that URIs may name, with their options."""

from irgym.core.uri import Family, Option

_BATCH = Option("batch", 1, high=1 << 10)


def _size(name: str, default: int, high: int = 1 << 14, low: int = 1, multiple: int = 1) -> Option:
    return Option(name, default, high, low, multiple)


def _images(size: int, low: int = 32, multiple: int = 1) -> tuple[Option, ...]:
    """Return the options of models of images with three channels, `size` pixels high and wide."""
    return _BATCH, _size("size", size, 1 << 11, low, multiple)


def _attention(layers: int, hidden: int, heads: int) -> tuple[Option, ...]:
    """Return the options for depth, width and heads of a transformer."""
    return _size("layers", layers, 64), _size("hidden", hidden), _size("heads", heads, 256)


def _text(sequence: int, vocabulary: int = 4096, low: int = 2) -> tuple[Option, ...]:
    """Return the options of models of tokens."""
    return _BATCH, _size("sequence", sequence, 1 << 13, low), _size("vocabulary", vocabulary, 1 << 18, 4)


_HEADS = (("hidden", "heads", 1),)

_SEED = Option("seed", 0, 1 << 20, 0)

CONVOLUTIONAL = (
    Family("resnet18", "torchvision's ResNet-18 (He et al., arXiv 1512.03385)", _images(224)),
    Family("resnet50", "torchvision's ResNet-50 (He et al., arXiv 1512.03385)", _images(128)),
    Family("resnext50", "torchvision's ResNeXt-50 32x4d (Xie et al., arXiv 1611.05431)", _images(128)),
    Family("inception_v3", "torchvision's Inception v3 (Szegedy et al., arXiv 1512.00567)", _images(160, 75)),
    Family("squeezenet1_1", "torchvision's SqueezeNet 1.1 (Iandola et al., arXiv 1602.07360)", _images(224)),
    Family(
        "mobilenet_v3", "torchvision's MobileNetV3, large (Howard et al., arXiv 1905.02244)", _images(224)
    ),
    Family("densenet121", "torchvision's DenseNet-121 (Huang et al., arXiv 1608.06993)", _images(128)),
    Family("efficientnet_b0", "torchvision's EfficientNet-B0 (Tan and Le, arXiv 1905.11946)", _images(224)),
    Family("shufflenet_v2", "torchvision's ShuffleNet v2, x1.0 (Ma et al., arXiv 1807.11164)", _images(224)),
    Family("convnext_tiny", "torchvision's ConvNeXt-T (Liu et al., arXiv 2201.03545)", _images(96)),
    Family(
        "preresnet",
        "ResNet with norms before convolutions, `width` channels at first (He et al., arXiv 1603.05027)",
        (*_images(128), _size("blocks", 2, 16), _size("width", 64, 1 << 10)),
    ),
    Family(
        "unet",
        "U-Net with batch norms, `width` channels at first (Ronneberger et al., arXiv 1505.04597)",
        (*_images(64, 32, 32), _size("levels", 3, 5), _size("width", 32, 1 << 10)),
    ),
    Family(
        "drawn_cnn",
        "blocks of published networks, at most `depth` in a stage, drawn by `seed`; to train on",
        (*_images(128, 64, 64), _SEED, _size("depth", 3, 16)),
    ),
)
"""Convolutional networks."""

TRANSFORMERS = (
    Family(
        "vit_b_16",
        "torchvision's ViT-B/16, of which layers=12 is the published one (arXiv 2010.11929)",
        (*_images(112, 16, 16), *_attention(4, 768, 12)),
        _HEADS,
    ),
    Family(
        "bert",
        "transformers' BERT with a padding mask (Devlin et al., arXiv 1810.04805)",
        (*_attention(4, 512, 8), *_text(64)),
        _HEADS,
    ),
    Family(
        "distilbert",
        "transformers' DistilBERT with a padding mask (Sanh et al., arXiv 1910.01108)",
        (*_attention(3, 512, 8), *_text(64)),
        _HEADS,
    ),
    Family(
        "gpt2",
        "transformers' GPT-2 with its head, a whole prompt (Radford et al., 2019)",
        (*_attention(4, 512, 8), *_text(64)),
        _HEADS,
    ),
    Family(
        "t5_encoder",
        "transformers' T5, the encoder, with a padding mask (Raffel et al., arXiv 1910.10683)",
        (*_attention(4, 512, 8), *_text(64)),
        _HEADS,
    ),
    Family(
        "deberta",
        "transformers' DeBERTa v2 with a padding mask (He et al., arXiv 2006.03654)",
        (*_attention(3, 384, 6), *_text(64)),
        _HEADS,
    ),
    Family(
        "llama",
        "transformers' Llama, a whole prompt, without its head (Touvron et al., arXiv 2302.13971)",
        (*_attention(3, 512, 8), *_text(64)),
        (("hidden", "heads", 2),),
    ),
    Family(
        "transformer",
        "torch.nn's encoder, the sequence before the batch (Vaswani et al., arXiv 1706.03762)",
        (*_attention(4, 512, 8), *_text(64)),
        _HEADS,
    ),
    Family(
        "whisper_encoder",
        "transformers' Whisper, the encoder, for 2 x sequence frames (Radford et al., arXiv 2212.04356)",
        (*_attention(4, 384, 6), _BATCH, _size("sequence", 100, 1 << 13, 2)),
        _HEADS,
    ),
    Family(
        "clip_text",
        "transformers' CLIP, the text tower, with a padding mask (Radford et al., arXiv 2103.00020)",
        (*_attention(4, 512, 8), *_text(77)),
        _HEADS,
    ),
    Family(
        "clip_vision",
        "transformers' CLIP, the image tower, in patches of 32 (Radford et al., arXiv 2103.00020)",
        (*_images(224, 32, 32), *_attention(4, 512, 8)),
        _HEADS,
    ),
    Family(
        "dalle",
        "DALL-E's decoder: words, then `grid` x `grid` image tokens (Ramesh et al., arXiv 2102.12092)",
        (*_attention(4, 512, 8), *_text(16, 2048), _size("grid", 4, 64)),
        _HEADS,
    ),
    Family(
        "emformer",
        "RNN-T's audio encoder in blocks with a memory: the Emformer (Shi et al., arXiv 2010.10759)",
        (
            _size("layers", 4, 64),
            _size("hidden", 256, low=4, multiple=4),
            _size("heads", 4, 256),
            _BATCH,
            _size("segments", 4, 256),
            _size("segment", 8, 256),
            Option("right", 2, 64, 0),
            Option("left", 16, 1 << 12, 0),
        ),
        _HEADS,
    ),
    Family(
        "drawn_transformer",
        "variants of attention from published networks, drawn by `seed`; to train on",
        (*_attention(2, 256, 4), *_text(32, 1024), _SEED),
        _HEADS,
    ),
)
"""Transformers."""

_STEPS = (_BATCH, _size("sequence", 8, 256), _size("hidden", 256), _size("layers", 2, 16))

RECURRENT = (
    Family(
        "nasrnn",
        "a recurrent cell that a search found, unrolled (Zoph and Le, arXiv 1611.01578; TASO)",
        (_BATCH, _size("cells", 5, 64), _size("hidden", 512)),
    ),
    Family("lstm", "layers of LSTM cells, unrolled (Hochreiter and Schmidhuber, 1997)", _STEPS),
    Family("gru", "layers of GRU cells, unrolled (Cho et al., arXiv 1406.1078)", _STEPS),
    Family(
        "drawn_rnn",
        "recurrent cells drawn by `seed`, unrolled; to train on",
        (_BATCH, _size("sequence", 6, 64), _size("hidden", 256), _SEED),
    ),
)
"""Recurrent networks."""

_KINDS = {"convolutional": CONVOLUTIONAL, "transformer": TRANSFORMERS, "recurrent": RECURRENT}

KINDS = {family.name: kind for kind, families in _KINDS.items() for family in families}
"""The kind of network of each family."""

FAMILIES = {family.name: family for families in _KINDS.values() for family in families}
"""All families by name."""

PACKAGES = {
    **dict.fromkeys(
        (
            "resnet18",
            "resnet50",
            "resnext50",
            "inception_v3",
            "squeezenet1_1",
            "mobilenet_v3",
            "densenet121",
            "efficientnet_b0",
            "shufflenet_v2",
            "convnext_tiny",
            "vit_b_16",
        ),
        "torchvision",
    ),
    **dict.fromkeys(
        (
            "bert",
            "distilbert",
            "gpt2",
            "t5_encoder",
            "deberta",
            "llama",
            "whisper_encoder",
            "clip_text",
            "clip_vision",
        ),
        "transformers",
    ),
}
"""The package with a family's models, if not irgym."""
