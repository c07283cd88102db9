"""Data sets of models, each with a fixed split into training and test programs.

The split of `models`, the default: no architecture, nor a close relative of one, is in both parts.

- Training: four ResNets, MobileNetV3, EfficientNet, SqueezeNet, ShuffleNet, ConvNeXt; GPT-2, Llama, T5's
  encoder, DeBERTa, Whisper's encoder, CLIP's towers, torch.nn's Transformer; LSTM; and 104 networks that
  are drawn at random from blocks of published networks.
- Test: Inception v3, DenseNet, U-Net; BERT, DistilBERT, ViT, DALL-E's decoder, Emformer; GRU, NASRNN.
"""

from collections.abc import Callable, Sequence

from irgym.core.dataset import Dataset, dataset_of
from irgym.envs.graph.programs.uris import parse_program

DEFAULT = "models"
"""The default data set for training and comparisons."""

X_RLFLOW = (
    "inception_v3",
    "squeezenet1_1",
    "resnext50",
    "resnet18",
    "bert",
    "dalle",
    "emformer",
    "vit_b_16",
)
"""X-RLflow's networks; the Emformer is torchaudio's version of its Transformer-Transducer."""


def _uris(*programs: str) -> tuple[str, ...]:
    """Return the canonical URIs of programs given without their scheme."""
    return tuple(parse_program(f"graph://{program}").uri for program in programs)


def _each(families: Sequence[str], *queries: str) -> tuple[str, ...]:
    """Return the canonical URIs of families under every query; an empty one stands for the defaults."""
    return _uris(*(f"{family}?{query}" for family in families for query in queries))


_TRAIN = (
    *_each(("resnet18", "squeezenet1_1", "mobilenet_v3"), "", "size=128", "size=96&batch=2"),
    *_each(("resnet50", "resnext50", "efficientnet_b0"), "size=96", "size=160"),
    *_each(("shufflenet_v2",), "", "size=128"),
    *_each(("convnext_tiny",), "", "size=160"),
    *_each(("preresnet",), "", "size=192&width=32", "blocks=3&size=96&width=48"),
    *_each(("gpt2", "t5_encoder", "transformer"), "", "sequence=128&layers=2", "hidden=256&heads=4"),
    *_each(("llama",), "", "sequence=128&layers=2"),
    *_each(("deberta",), "", "sequence=32", "hidden=256&heads=4&layers=2"),
    *_each(("clip_text",), "", "hidden=256&heads=4"),
    *_each(("whisper_encoder",), "", "sequence=200&layers=2"),
    *_each(("clip_vision",), "", "size=160&layers=6"),
    *_each(("lstm",), "", "layers=1&hidden=512", "sequence=16", "batch=8", "layers=3&hidden=128&sequence=12"),
)
_DRAWN = (
    *_each(("drawn_cnn",), *(f"seed={seed}&size={(64, 128, 192)[seed % 3]}" for seed in range(24))),
    *_each(
        ("drawn_cnn",),
        *(f"seed={seed}&size={(64, 128)[seed % 2]}&depth={(4, 8, 12)[seed % 3]}" for seed in range(24, 60)),
    ),
    *_each(("drawn_transformer",), *(f"seed={seed}&sequence={(32, 64)[seed % 2]}" for seed in range(20))),
    *_each(("drawn_rnn",), *(f"seed={seed}&hidden={(256, 512)[seed % 2]}" for seed in range(24))),
)
"""Networks drawn at random, so that training does not merely memorise a dozen architectures."""

_TEST = (
    *_each(("inception_v3", "densenet121", "unet"), ""),
    *_each(("bert", "distilbert"), "", "sequence=128&layers=2"),
    *_each(("vit_b_16", "dalle", "emformer"), ""),
    *_each(("gru",), "", "hidden=512&layers=1"),
    *_each(("nasrnn",), "", "hidden=256"),
)


def _models() -> Dataset:
    return Dataset(
        "models", "networks of real exporters; no architecture is in both splits", (*_TRAIN, *_DRAWN), _TEST
    )


def _x_rlflow() -> Dataset:
    eight = _each(X_RLFLOW, "")
    return Dataset("x-rlflow", "X-RLflow's eight networks; trained on what is tested, as there", eight, eight)


def _sizes() -> Dataset:
    test = (
        *_each(("inception_v3",), "size=128", "size=224"),
        *_each(("squeezenet1_1", "resnet18"), "size=160", "size=256"),
        *_each(("resnext50",), "size=96", "size=160"),
        *_each(("bert",), "sequence=32", "sequence=128"),
        *_each(("dalle",), "grid=6", "sequence=32"),
        *_each(("emformer",), "segments=2", "segments=8"),
        *_each(("vit_b_16",), "size=80", "size=160"),
    )
    text = "X-RLflow's eight networks; the test has other sizes of images and sequences"
    return Dataset("sizes", text, _each(X_RLFLOW, ""), test)


def _tiny() -> Dataset:
    attention = "layers=1&hidden=32&heads=2&sequence=8&vocabulary=64"
    train = (
        "squeezenet1_1?size=32",
        f"gpt2?{attention}",
        f"t5_encoder?{attention}",
        "lstm?layers=1&hidden=32&sequence=3",
    )
    test = (
        "unet?size=32&levels=1&width=4",
        f"bert?{attention}",
        f"dalle?{attention}&grid=2",
        "nasrnn?cells=2&hidden=32",
    )
    return Dataset("tiny", "very small networks, for trying things out", _uris(*train), _uris(*test))


DATASETS: dict[str, Callable[[], Dataset]] = {
    "models": _models,
    "x-rlflow": _x_rlflow,
    "sizes": _sizes,
    "tiny": _tiny,
}
"""The data sets, the default first."""


def dataset(name: str) -> Dataset:
    """Return a data set.

    Raises:
        ProgramError: There is none of that name; the message lists those that exist.
    """
    return dataset_of(DATASETS, name)
