"""Load published models into linalg as they are, with random weights; print a table as markdown.

Each is built by functions of its package, put into evaluation mode, imported in a separate process, and
described as a program. If a model is refused, the message names the obstacle.

    pip install torchvision timm transformers torchaudio
    python benchmarks/published_models.py --out docs/measured/published_models.md
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from typing import Any

import tyro

LIMIT_S = 600.0
"""Time for a model."""


@dataclass(frozen=True)
class Published:
    """A model and its example inputs.

    Attributes:
        package: Where it was published.
        name: What the package calls it.
        build: Makes both.
    """

    package: str
    name: str
    build: Callable[[], tuple[Any, tuple[Any, ...]]]


def _image(size: int = 224) -> Any:
    import torch

    return torch.zeros(1, 3, size, size)


def _tokens(length: int = 128) -> Any:
    import torch

    return torch.ones(1, length, dtype=torch.int64)


def _torchvision(name: str, size: int = 224, **options: Any) -> tuple[Any, tuple[Any, ...]]:
    models = import_module("torchvision.models")
    return models.get_model(name, weights=None, **options), (_image(size),)


def _segmenting(name: str) -> tuple[Any, tuple[Any, ...]]:
    return _torchvision(name, weights_backbone=None)


def _timm(name: str, size: int = 224) -> tuple[Any, tuple[Any, ...]]:
    return import_module("timm").create_model(name, pretrained=False), (_image(size),)


def _transformers(name: str, configuration: str, *inputs: Any, **options: Any) -> tuple[Any, tuple[Any, ...]]:
    package = import_module("transformers")
    config = getattr(package, configuration)(**options)
    return getattr(package, name)(config), tuple(make() for make in inputs)


def _wave(seconds: float = 1.0, channels: tuple[int, ...] = ()) -> Any:
    import torch

    return torch.zeros(1, *channels, int(16_000 * seconds))


def _frames(length: int, bands: int) -> Any:
    import torch

    return torch.zeros(1, bands, length)


def _t5() -> tuple[Any, tuple[Any, ...]]:
    package = import_module("transformers")
    return package.T5EncoderModel(package.T5Config()), (_tokens(),)


def _torchaudio(name: str, *inputs: Any, **options: Any) -> tuple[Any, tuple[Any, ...]]:
    models = import_module("torchaudio.models")
    return getattr(models, name)(**options), tuple(make() for make in inputs)


def without_torchaudios_library() -> None:
    """Have torchaudio's models, which are plain torch, be imported without its library.

    PyPI's library is linked against CUDA, and `import torchaudio` loads it: beside a torch for CPUs it fails.
    transformers imports torchaudio too.
    """
    spec = find_spec("torchaudio")
    if spec is not None:
        sys.modules["torchaudio"] = module_from_spec(spec)


def _lengths() -> Any:
    import torch

    return torch.tensor([200])


VISION = (
    "alexnet",
    "convnext_tiny",
    "densenet121",
    "efficientnet_b0",
    "maxvit_t",
    "mnasnet1_0",
    "mobilenet_v2",
    "mobilenet_v3_small",
    "regnet_y_400mf",
    "resnet18",
    "resnet50",
    "resnext50_32x4d",
    "shufflenet_v2_x1_0",
    "squeezenet1_1",
    "swin_t",
    "swin_v2_t",
    "vgg11_bn",
    "vit_b_16",
    "wide_resnet50_2",
)

TIMM = (
    "cait_xxs24_224",
    "coat_tiny",
    "crossvit_tiny_240",
    "deit_tiny_patch16_224",
    "efficientformer_l1",
    "ghostnet_100",
    "hrnet_w18_small",
    "levit_128",
    "mixer_s16_224",
    "mobilevit_s",
    "poolformer_s12",
    "pvt_v2_b0",
    "res2net50_26w_4s",
    "resmlp_12_224",
)

TEXT = (
    ("AlbertModel", "AlbertConfig"),
    ("BertModel", "BertConfig"),
    ("BloomModel", "BloomConfig"),
    ("DistilBertModel", "DistilBertConfig"),
    ("ElectraModel", "ElectraConfig"),
    ("GPT2Model", "GPT2Config"),
    ("MPNetModel", "MPNetConfig"),
    ("OPTModel", "OPTConfig"),
    ("RobertaModel", "RobertaConfig"),
    ("XLNetModel", "XLNetConfig"),
)

SMALL = {"hidden_size": 512, "intermediate_size": 1408, "num_hidden_layers": 4, "num_attention_heads": 8}
"""Fewer layers than published, where the defaults have billions of weights."""

SIZES = {"crossvit_tiny_240": 240, "mobilevit_s": 256}

MODELS = (
    *(Published("torchvision", name, partial(_torchvision, name)) for name in VISION),
    Published("torchvision", "googlenet", partial(_torchvision, "googlenet", init_weights=False)),
    Published(
        "torchvision", "inception_v3", partial(_torchvision, "inception_v3", size=299, init_weights=False)
    ),
    Published(
        "torchvision", "deeplabv3_mobilenet_v3_large", partial(_segmenting, "deeplabv3_mobilenet_v3_large")
    ),
    Published("torchvision", "lraspp_mobilenet_v3_large", partial(_segmenting, "lraspp_mobilenet_v3_large")),
    *(Published("timm", name, partial(_timm, name, SIZES.get(name, 224))) for name in TIMM),
    *(
        Published("transformers", name, partial(_transformers, name, config, _tokens))
        for name, config in TEXT
    ),
    Published("transformers", "T5EncoderModel", _t5),
    Published(
        "transformers", "LlamaModel", partial(_transformers, "LlamaModel", "LlamaConfig", _tokens, **SMALL)
    ),
    Published(
        "transformers", "Qwen2Model", partial(_transformers, "Qwen2Model", "Qwen2Config", _tokens, **SMALL)
    ),
    Published("transformers", "ViTModel", partial(_transformers, "ViTModel", "ViTConfig", _image)),
    Published(
        "transformers", "SegformerModel", partial(_transformers, "SegformerModel", "SegformerConfig", _image)
    ),
    Published(
        "transformers", "Wav2Vec2Model", partial(_transformers, "Wav2Vec2Model", "Wav2Vec2Config", _wave)
    ),
    Published(
        "transformers",
        "CLIPVisionModel",
        partial(_transformers, "CLIPVisionModel", "CLIPVisionConfig", _image),
    ),
    Published("torchaudio", "ConvTasNet", partial(_torchaudio, "ConvTasNet", partial(_wave, 0.5, (1,)))),
    Published(
        "torchaudio",
        "Wav2Letter",
        partial(_torchaudio, "Wav2Letter", partial(_frames, 200, 40), input_type="mfcc", num_features=40),
    ),
    Published(
        "torchaudio",
        "Conformer",
        partial(
            _torchaudio,
            "Conformer",
            partial(_frames, 80, 200),
            _lengths,
            input_dim=80,
            num_heads=4,
            ffn_dim=128,
            num_layers=4,
            depthwise_conv_kernel_size=31,
        ),
    ),
    Published("torchaudio", "wav2vec2_base", partial(_torchaudio, "wav2vec2_base", _wave)),
)


@dataclass(frozen=True)
class Options:
    """Options."""

    names: tuple[str, ...] = ()
    """Models by name; all if empty."""
    out: Path | None = None
    """Where to write the table."""
    child: str | None = None
    """For child processes: the model to load here."""


@dataclass(frozen=True)
class Loaded:
    """Outcome of loading a model.

    Attributes:
        package: Where it was published.
        name: What the package calls it.
        operations: Number of operations of its program; 0 for none.
        problem: What is in the way; empty if it loads.
        seconds: Of `from_torch`.
    """

    package: str
    name: str
    operations: int
    problem: str
    seconds: float


def load(published: Published) -> Loaded:
    """Build a model and load it in this process."""
    import torch

    from irgym.base.errors import IrgymError
    from irgym.envs.graph.programs.models.images import declare_operators_that_cannot_be_loaded
    from irgym.envs.linalg.environment import LINALG
    from irgym.programs import from_torch

    without_torchaudios_library()
    declare_operators_that_cannot_be_loaded()
    torch.manual_seed(0)
    module, inputs = published.build()
    begun = time.perf_counter()
    try:
        uri = from_torch(module.eval(), *inputs, environment="linalg")
        seconds = time.perf_counter() - begun
        operations, problem = len(LINALG.task(uri).program.operations), ""
    except IrgymError as error:
        operations, problem, seconds = 0, str(error), time.perf_counter() - begun
    return Loaded(published.package, published.name, operations, problem, seconds)


def apart(published: Published) -> Loaded:
    """Load a model in a child process."""
    begun = time.perf_counter()
    command = [sys.executable, __file__, "--child", published.name]
    try:
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        return Loaded(published.package, published.name, 0, f"took longer than {LIMIT_S:.0f} s", LIMIT_S)
    if done.returncode == 0:
        return Loaded(**json.loads(done.stdout.splitlines()[-1]))
    said = [line for line in done.stderr.splitlines() if line.strip()] or [f"ended with {done.returncode}"]
    return Loaded(published.package, published.name, 0, said[-1], time.perf_counter() - begun)


def table(rows: list[Loaded]) -> str:
    """Return the table as markdown."""
    versions = ", ".join(
        f"{name} {_version(name)}" for name in dict.fromkeys(["torch", *(row.package for row in rows)])
    )
    loaded = sum(not row.problem for row in rows)
    lines = [
        f"{loaded} of {len(rows)} load ({versions}).",
        "",
        "| package | model | operations | seconds | what is in the way |",
        "|---|---|---|---|---|",
        *(
            f"| {row.package} | `{row.name}` | {row.operations or ''} | {row.seconds:.0f} | {row.problem} |"
            for row in rows
        ),
        "",
        f"Written by `python benchmarks/published_models.py`, {time.strftime('%Y-%m-%d')}.",
    ]
    return "\n".join(lines) + "\n"


def _version(package: str) -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def main() -> None:
    """Load them, one after the other."""
    options = tyro.cli(Options, description=__doc__)
    if options.child is not None:
        [published] = [model for model in MODELS if model.name == options.child]
        print(json.dumps(asdict(load(published))))
        return
    chosen = [model for model in MODELS if not options.names or model.name in options.names]
    rows: list[Loaded] = []
    for published in chosen:
        rows.append(apart(published))
        row = rows[-1]
        print(
            f"{row.package:<13}{row.name:<30}{row.operations:>6}{row.seconds:>7.0f} s  {row.problem}",
            flush=True,
        )
    text = table(rows)
    print(text.splitlines()[0])
    if options.out is not None:
        options.out.write_text(text)


if __name__ == "__main__":
    main()
