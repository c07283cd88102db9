"""The families of model programs."""

from collections.abc import Mapping
from dataclasses import replace

from irgym.core.uri import Family, Option
from irgym.envs.hlo.programs.numeric_families import NUMERIC_FAMILIES
from irgym.envs.hlo.programs.parameters import depth, flag, size, word

_SHAPE = (word("shape", "tiny", "full"), word("dtype", "f32", "bf16"))
_INFER = (word("mode", "forward"), *_SHAPE)
_TRAIN = (
    word("mode", "train", "forward"),
    *_SHAPE,
    word("optimizer", "adam", "sgd", "momentum", "lion", "adafactor", training=True),
    flag("clip", True, training=True),
)
_SCAN = flag("scan", False)
_DEEP = (_SCAN, flag("remat", False, training=True))
_DROP = flag("dropout", True, training=True)
_HEADS = (("width", "heads", 1),)


def _batch(tiny: int, full: int) -> Option:
    return size("batch", tiny, full, high=1 << 14)


def _width(tiny: int, full: int, low: int = 1) -> Option:
    return size("width", tiny, full, low=low, high=1 << 14)


def _attention(layers: int, width: int, heads: int) -> tuple[Option, ...]:
    """Return the depth, width and heads of a transformer; the arguments are the published values."""
    return depth("layers", 2, layers), _width(64, width), size("heads", 4, heads, high=256)


def _text(vocabulary: int, sequence: int, batch: int, tiny_sequence: int = 32) -> tuple[Option, ...]:
    """Return the sizes of a batch of text."""
    return (
        size("vocabulary", 512, vocabulary, low=2, high=1 << 18),
        size("sequence", tiny_sequence, sequence, low=2, high=1 << 15),
        _batch(2, batch),
    )


def _images(pixels: int = 224, classes: int = 1000, batch: int = 8) -> tuple[Option, ...]:
    """Return the sizes of a batch of images with labels."""
    return (
        size("pixels", 32, pixels, low=8, high=1 << 11),
        size("classes", 10, classes, low=2),
        _batch(2, batch),
    )


_TRANSFORMERS = (
    Family(
        "gpt2",
        "GPT-2: decoder-only transformer, next-token loss (Radford et al., 2019)",
        (*_TRAIN, _DROP, *_DEEP, *_attention(12, 768, 12), *_text(50257, 1024, 8)),
        _HEADS,
    ),
    Family(
        "bert",
        "BERT: encoder-only transformer, masked-token loss (Devlin et al., arXiv 1810.04805)",
        (*_TRAIN, _DROP, *_DEEP, *_attention(12, 768, 12), *_text(30522, 128, 8)),
        _HEADS,
    ),
    Family(
        "vit",
        "Vision Transformer (Dosovitskiy et al., arXiv 2010.11929)",
        (*_TRAIN, _DROP, *_DEEP, *_attention(12, 768, 12), size("patch", 8, 16, high=64), *_images()),
        (*_HEADS, ("pixels", "patch", 1)),
    ),
    Family(
        "llama",
        "Llama: rotary positions, grouped queries, gated feed-forward (Touvron et al., arXiv 2307.09288)",
        (*_TRAIN, *_DEEP, *_attention(22, 2048, 32), size("groups", 2, 4, high=256), *_text(32000, 2048, 2)),
        (("width", "heads", 2), ("heads", "groups", 1)),
    ),
    Family(
        "moe",
        "transformer with mixtures of experts (Shazeer et al., arXiv 1701.06538)",
        (
            *_TRAIN,
            *_attention(12, 768, 12),
            size("experts", 4, 8, high=256),
            size("top", 2, 2, high=8),
            *_text(32000, 512, 4),
        ),
        _HEADS,
        (("top", "experts"),),
    ),
    Family(
        "t5",
        "T5: encoder and decoder with relative positions (Raffel et al., arXiv 1910.10683)",
        (*_TRAIN, *_attention(6, 512, 8), *_text(32128, 512, 4)),
        _HEADS,
    ),
    Family(
        "decode",
        "one step of sampling from GPT-2 with a cache of keys and values",
        (
            *_INFER,
            _SCAN,
            word("sampling", "top_k", "greedy", "temperature", "nucleus"),
            size("top", 8, 50, high=1 << 10),
            *_attention(12, 768, 12),
            size("vocabulary", 512, 50257, low=2, high=1 << 18),
            size("context", 32, 1024, low=2, high=1 << 15),
            _batch(2, 8),
        ),
        _HEADS,
        (("top", "vocabulary"),),
    ),
    Family(
        "beam",
        "one step of beam search with GPT-2 and a cache of keys and values",
        (
            *_INFER,
            _SCAN,
            size("beams", 4, 8, high=64),
            *_attention(12, 768, 12),
            size("vocabulary", 512, 50257, low=2, high=1 << 18),
            size("context", 32, 1024, low=2, high=1 << 15),
            _batch(2, 4),
        ),
        _HEADS,
        (("beams", "vocabulary"),),
    ),
)

_IMAGES = (
    Family(
        "resnet18",
        "ResNet of basic blocks, four stages of `depth`; 2 make ResNet-18 (He et al., arXiv 1512.03385)",
        (*_TRAIN, depth("depth", 2, 2, high=8), _width(8, 64), *_images()),
    ),
    Family(
        "resnet50",
        "ResNet-50: bottleneck blocks, stages of 3, 4, 6 and 3 (He et al., arXiv 1512.03385)",
        (*_TRAIN, _width(8, 64), *_images()),
    ),
    Family(
        "mobilenet",
        "MobileNetV2: depthwise convolutions, up to `depth` blocks a stage (Sandler, arXiv 1801.04381)",
        (*_TRAIN, depth("depth", 1, 4, high=4), _width(8, 32, low=4), *_images()),
    ),
    Family(
        "densenet",
        "DenseNet: `blocks` of `depth` layers, growing by `width` each (Huang et al., arXiv 1608.06993)",
        (
            *_TRAIN,
            depth("blocks", 2, 3, high=3),
            depth("depth", 3, 12, high=24),
            _width(4, 12),
            *_images(32, 10),
        ),
    ),
    Family(
        "mixer",
        "MLP-Mixer (Tolstikhin et al., arXiv 2105.01601)",
        (*_TRAIN, depth("layers", 2, 12), _width(32, 768, low=2), size("patch", 8, 16, high=64), *_images()),
        (("pixels", "patch", 1),),
    ),
    Family(
        "unet",
        "diffusion with a U-Net: training, or one step of sampling (Ho et al., arXiv 2006.11239)",
        (
            *_TRAIN,
            depth("levels", 2, 3, high=4),
            depth("depth", 1, 2, high=4),
            _width(16, 128, low=4),
            size("heads", 2, 4, high=64),
            size("pixels", 16, 32, low=8, high=1 << 10),
            _batch(2, 8),
        ),
        _HEADS,
    ),
    Family(
        "vae",
        "variational autoencoder of images; forward samples (Kingma and Welling, arXiv 1312.6114)",
        (
            *_TRAIN,
            depth("depth", 2, 3, high=3),
            _width(8, 32),
            size("latents", 8, 128, high=1 << 12),
            size("pixels", 16, 64, low=8, high=1 << 10),
            _batch(2, 64),
        ),
    ),
    Family(
        "nerf",
        "neural radiance field, volume rendering of rays (Mildenhall et al., arXiv 2003.08934)",
        (
            *_TRAIN,
            depth("layers", 2, 4, high=16),
            _width(32, 256, low=2),
            depth("frequencies", 4, 10, high=16),
            size("samples", 8, 64, low=2, high=1 << 10),
            _batch(4, 1024),
        ),
    ),
)

_SEQUENCES = (
    Family(
        "lstm",
        "language model of LSTM layers; `unroll` steps in the loop's body (arXiv 1409.2329)",
        (
            *_TRAIN,
            depth("layers", 2, 2, high=8),
            depth("unroll", 1, 1),
            _width(32, 650),
            *_text(10000, 35, 20, 16),
        ),
    ),
    Family(
        "gru",
        "classifier of sequences by GRU layers (Cho et al., arXiv 1406.1078)",
        (
            *_TRAIN,
            depth("layers", 1, 3, high=8),
            depth("unroll", 1, 1),
            flag("bidirectional", False),
            _width(32, 512),
            size("features", 16, 80),
            size("sequence", 16, 200, low=2, high=1 << 14),
            size("classes", 10, 1000, low=2),
            _batch(2, 16),
        ),
    ),
    Family(
        "ssm",
        "language model of selective state spaces, as in Mamba (Gu and Dao, arXiv 2312.00752)",
        (
            *_TRAIN,
            word("recurrence", "tree", "loop"),
            depth("layers", 1, 24),
            _width(16, 768),
            size("states", 4, 16, high=256),
            *_text(50257, 512, 2, 16),
        ),
    ),
    Family(
        "wavenet",
        "WaveNet: gated dilated convolutions of sound (van den Oord et al., arXiv 1609.03499)",
        (
            *_TRAIN,
            depth("layers", 3, 20),
            depth("cycle", 3, 10, high=12),
            _width(16, 64),
            size("levels", 64, 256, low=2),
            size("sequence", 32, 4096, low=2, high=1 << 16),
            _batch(2, 4),
        ),
    ),
)

_OTHERS = (
    Family(
        "mlp",
        "multi-layer perceptron on flat images",
        (
            *_TRAIN,
            flag("dropout", False, training=True),
            word("activation", "relu", "gelu", "tanh", "silu"),
            depth("layers", 3, 3),
            size("inputs", 64, 784, high=1 << 16),
            _width(32, 512),
            size("classes", 10, 10, low=2),
            _batch(8, 128),
        ),
    ),
    Family(
        "dlrm",
        "recommendation from dense features and embedding tables (Naumov et al., arXiv 1906.00091)",
        (
            *_TRAIN,
            depth("layers", 2, 3, high=16),
            depth("tables", 4, 26),
            size("rows", 64, 100_000, high=1 << 22),
            _width(8, 64),
            size("features", 13, 13),
            size("bag", 2, 4, high=256),
            _batch(4, 512),
        ),
    ),
    Family(
        "gnn",
        "message passing on a graph (Gilmer et al., arXiv 1704.01212)",
        (
            *_TRAIN,
            word("aggregate", "sum", "mean", "max", "attention"),
            depth("layers", 2, 4, high=32),
            _width(16, 128),
            size("features", 8, 128),
            size("nodes", 32, 2708, high=1 << 20),
            size("edges", 64, 10556, high=1 << 22),
            size("classes", 4, 7, low=2),
        ),
    ),
    Family(
        "ppo",
        "proximal policy optimisation: one update, or one act (Schulman et al., arXiv 1707.06347)",
        (
            *_TRAIN,
            flag("continuous", False),
            depth("layers", 2, 2, high=16),
            depth("unroll", 1, 1),
            _width(16, 64),
            size("features", 8, 17),
            size("actions", 4, 6, high=1 << 12),
            size("steps", 8, 128, low=2, high=1 << 12),
            size("actors", 4, 16, high=1 << 12),
        ),
    ),
    Family(
        "maml",
        "meta-learning, gradients through `steps` gradient steps (Finn et al., arXiv 1703.03400)",
        (
            *_TRAIN,
            depth("steps", 1, 5, high=16),
            depth("layers", 2, 2, high=16),
            _width(16, 40),
            size("points", 5, 10, high=1 << 10),
            _batch(4, 25),
        ),
    ),
    Family(
        "pinn",
        "physics-informed network for Burgers' equation (Raissi et al., arXiv 1711.10561)",
        (
            *_TRAIN,
            word("derivative", "reverse", "forward"),
            depth("layers", 2, 8, high=16),
            _width(8, 20),
            _batch(8, 10000),
        ),
    ),
    Family(
        "ode",
        "neural differential equation, classical Runge-Kutta steps (Chen et al., arXiv 1806.07366)",
        (
            *_TRAIN,
            depth("layers", 1, 2, high=8),
            depth("unroll", 1, 1, high=16),
            size("steps", 8, 64, high=1 << 12),
            _width(16, 64),
            size("features", 4, 16),
            _batch(4, 256),
        ),
    ),
)

FAMILIES: Mapping[str, Family] = {
    family.name: replace(family, presets="shape")
    for family in (*_TRANSFORMERS, *_IMAGES, *_SEQUENCES, *_OTHERS, *NUMERIC_FAMILIES)
}
"""The families, by name."""
