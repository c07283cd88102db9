"""`torch.compile(module, backend="irgym")` on 20 published modules, timed in turn with eager and inductor.

Each module, with random weights, is compiled once with `dynamic=True` and called with two batch sizes. The
table says whether outputs are the module's, how often irgym tuned for the second batch size, and the median
ratios of the times of eager calls, and of calls compiled by inductor, to ours. Inductor is compiled in the
same way.

    pip install transformers
    python benchmarks/torch_compile.py --out docs/measured/torch_compile.md
"""

import json
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
import tyro
from torch import nn
from torch.utils import _pytree as pytree

from irgym.api import torch_compile
from irgym.envs.graph.programs.models.images import declare_operators_that_cannot_be_loaded
from irgym.judging.calls import time_calls
from irgym.judging.statistics import geometric_interval
from irgym.measure.machine import fingerprint

Example = Callable[[int], Mapping[str, torch.Tensor]]
"""Returns inputs of a batch size."""

ROUNDS = 15
"""Rounds of each comparison."""

ALLOWED = 1.05
"""Factor by which ours may take longer than eager."""


@dataclass(frozen=True)
class Options:
    """Options."""

    modules: tuple[str, ...] = ()
    """Modules by name; all if empty."""
    threads: int = 1
    """Number of threads of all."""
    batches: tuple[int, int] = (4, 7)
    """The batch size that is tuned, and another."""
    seconds: float = 20.0
    """Time for each search."""
    out: Path | None = None
    """Where to write the table."""
    child: bool = False
    """For child processes: run the first name here, and print the outcome as JSON."""


LANGUAGE = {
    "hidden_size": 256,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "intermediate_size": 1024,
    "vocab_size": 5000,
}
IMAGES = {key: LANGUAGE[key] for key in LANGUAGE if key != "vocab_size"} | {
    "image_size": 112,
    "patch_size": 16,
}
DECODER = {**LANGUAGE, "use_cache": False}
T5 = {"d_model": 256, "d_ff": 1024, "num_layers": 4, "num_heads": 4, "d_kv": 64, "vocab_size": 5000}
OPT = {
    "hidden_size": 256,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "ffn_dim": 1024,
    "vocab_size": 5000,
}
GPT2 = {"n_embd": 256, "n_layer": 4, "n_head": 4, "vocab_size": 5000, "use_cache": False}


def _tokens(batch: int) -> Mapping[str, torch.Tensor]:
    ids = torch.randint(3, 5000, (batch, 64))
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}


def _images(batch: int) -> Mapping[str, torch.Tensor]:
    return {"pixel_values": torch.randn(batch, 3, 112, 112)}


def _vectors(batch: int) -> Mapping[str, torch.Tensor]:
    return {"input": torch.randn(batch, 784)}


TRANSFORMERS: dict[str, tuple[str, Mapping[str, Any], Example]] = {
    "bert": ("Bert", LANGUAGE, _tokens),
    "roberta": ("Roberta", LANGUAGE, _tokens),
    "electra": ("Electra", LANGUAGE, _tokens),
    "mpnet": ("MPNet", LANGUAGE, _tokens),
    "albert": ("Albert", LANGUAGE, _tokens),
    "distilbert": ("DistilBert", {"dim": 256, "n_layers": 4, "n_heads": 4, "hidden_dim": 1024}, _tokens),
    "t5_encoder": ("T5:T5EncoderModel", T5, _tokens),
    "gpt2": ("GPT2", GPT2, _tokens),
    "opt": ("OPT", {**OPT, "use_cache": False}, _tokens),
    "llama": ("Llama", {**DECODER, "num_key_value_heads": 2}, _tokens),
    "qwen2": ("Qwen2", {**DECODER, "num_key_value_heads": 2}, _tokens),
    "gpt_neox": ("GPTNeoX", DECODER, _tokens),
    "vit": ("ViT", IMAGES, _images),
    "deit": ("DeiT", IMAGES, _images),
    "dinov2": ("Dinov2", IMAGES, _images),
    "resnet": ("ResNet", {"embedding_size": 32, "hidden_sizes": [64, 128, 256, 512]}, _images),
    "regnet": ("RegNet", {}, _images),
    "convnext": ("ConvNext", {"depths": [2, 2, 6, 2], "hidden_sizes": [48, 96, 192, 384]}, _images),
    "mobilenet_v2": ("MobileNetV2", {"image_size": 112}, _images),
}
"""Class of transformers, its configuration, and inputs, by name."""


def built(name: str) -> tuple[nn.Module, Example]:
    """Return a module in evaluation mode, with random weights, and its inputs."""
    torch.manual_seed(0)
    if name == "mlp":
        layers = (nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
        return nn.Sequential(*layers).eval(), _vectors
    stem, configuration, example = TRANSFORMERS[name]
    family, _, model = stem.partition(":")
    declare_operators_that_cannot_be_loaded()  # transformers imports torchvision
    transformers = import_module("transformers")
    config = getattr(transformers, f"{family}Config")(**configuration)
    return getattr(transformers, model or f"{family}Model")(config).eval(), example


NAMES = (*TRANSFORMERS, "mlp")
"""The modules."""


@dataclass(frozen=True)
class Found:
    """Outcome of a module.

    Attributes:
        module: Its name.
        same: Whether outputs of both batch sizes are those of the module.
        again: How often irgym tuned a graph for the second batch size.
        said: Warnings of irgym, as where a graph runs as it is.
        eager: Median ratios of eager calls' time to ours, by batch size.
        inductor: The same of inductor.
    """

    module: str
    same: bool
    again: int
    said: Sequence[str]
    eager: Sequence[float]
    inductor: Sequence[float]


def find(name: str, options: Options) -> Found:
    """Compile a module in this process and time calls of it."""
    torch.set_num_threads(options.threads)
    module, example = built(name)
    tunings = 0

    def counted(graph: Any, inputs: Any, **given: Any) -> Any:
        nonlocal tunings
        tunings += 1
        return torch_compile.backend(graph, inputs, **given)

    ours = torch.compile(
        module,
        backend=counted,
        dynamic=True,
        options={"seconds": options.seconds, "threads": options.threads, "reuse": False},
    )
    inductor = torch.compile(module, dynamic=True)
    same, counts, eager, compiled = True, [], [], []
    with torch.inference_mode(), warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for batch in options.batches:
            inputs = example(batch)
            same &= alike(ours(**inputs), module(**inputs))
            counts.append(tunings)
            inductor(**inputs)
            named = [_of_named(function, inputs) for function in (ours, module, inductor)]
            eager.append(time_calls(named[0], named[1], (), ROUNDS, "eager").ratio)
            compiled.append(time_calls(named[0], named[2], (), ROUNDS, "inductor").ratio)
    words = [str(warning.message) for warning in said if "irgym" in str(warning.message)]
    return Found(name, same, counts[1] - counts[0], words, eager, compiled)


def _of_named(function: Callable[..., Any], inputs: Mapping[str, torch.Tensor]) -> Callable[[], Any]:
    return lambda: function(**inputs)


def alike(found: Any, wanted: Any) -> bool:
    """Say whether results have the same structure, types and, up to rounding, numbers."""
    ours, structure = pytree.tree_flatten(found)
    theirs, other = pytree.tree_flatten(wanted)
    return structure == other and all(
        left.dtype == right.dtype
        and torch.allclose(left, right, rtol=1e-3, atol=1e-3 * float(right.abs().max()))
        for left, right in zip(ours, theirs, strict=True)
        if isinstance(right, torch.Tensor)
    )


def apart(name: str, options: Options) -> Found | str:
    """Run a module in a child process; return the reason if there is no result."""
    words = [sys.executable, __file__, "--child", "--modules", name, "--threads", str(options.threads)]
    words += ["--seconds", str(options.seconds), "--batches", *map(str, options.batches)]
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    if done.returncode:
        return done.stderr.strip().splitlines()[-1]
    return Found(**json.loads(done.stdout.splitlines()[-1]))


def line(row: Found) -> str:
    """Return the row of the table."""
    ratios = [f"{ratio:.2f}" for ratio in (*row.eager, *row.inductor)]
    same = "yes" if row.same else "NO"
    return f"| {' | '.join([f'`{row.module}`', same, str(row.again), *ratios, ' '.join(row.said)])} |"


def summary(rows: Sequence[Found]) -> str:
    """Return what the rows come to."""
    eager = [ratio for row in rows for ratio in row.eager]
    inductor = geometric_interval([ratio for row in rows for ratio in row.inductor])
    slower = sum(ratio < 1 / ALLOWED for ratio in eager)
    return (
        f"{sum(row.same for row in rows)} of {len(rows)} with the module's outputs; {slower} of {len(eager)} "
        f"times slower than eager by more than 5 %; over inductor {inductor.mean:.2f} ({inductor.low:.2f} to "
        f"{inductor.high:.2f}, geometric mean); {sum(row.again for row in rows)} tunings for the second "
        "batch size."
    )


def main() -> None:
    """Run all."""
    options = tyro.cli(Options, description=__doc__)
    names = options.modules or NAMES
    if options.child:
        print(json.dumps(asdict(find(names[0], options))))
        return
    first, second = options.batches
    lines = [
        f"| module | same outputs | tunings for batch {second} | over eager, batch {first} | batch {second} "
        f"| over inductor, batch {first} | batch {second} | warnings |",
        "|---|---|---|---|---|---|---|---|",
    ]
    print(*lines, sep="\n")
    rows: list[Found] = []
    for name in names:
        found = apart(name, options)
        lines.append(f"| `{name}` | {found} | | | | | | |" if isinstance(found, str) else line(found))
        rows += [] if isinstance(found, str) else [found]
        print(lines[-1], flush=True)
    packages = ", ".join(f"{name} {version(name)}" for name in ("torch", "transformers"))
    written = (
        f"{packages}; {options.threads} threads; searches of {options.seconds:g} s; {fingerprint().text()}."
    )
    lines += ["", summary(rows), "", written] if rows else ["", written]
    print(*lines[-3:], sep="\n")
    if options.out is not None:
        date = f"Written by `python benchmarks/torch_compile.py`, {time.strftime('%Y-%m-%d')}."
        options.out.write_text("\n".join([*lines, date, ""]))


if __name__ == "__main__":
    main()
