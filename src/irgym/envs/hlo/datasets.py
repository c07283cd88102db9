"""Data sets of graphs, each with a fixed split into training and test programs.

How `families`, the default, is split:

- Nine families are in the test split only: vit, moe, decode, resnet50, densenet, unet, gru, ppo, pinn.
- Four are in both, at depths that are disjoint: gpt2 (1, 2, 3, 5, 7 and 9 layers against 4, 6, 8, 10 and
  12), bert (1, 2, 5 and 8 against 3, 4, 6 and 12), resnet18 (stages of 1 block against 2 and 3), mlp (up to
  4 layers against 5 to 8). A scan over layers hides the depth, so gpt2 has scans in the test split only and
  bert in the training split only.
- The other fourteen are in the training split only.

Training graphs have fewer than 9,000 operations before any pass. Within a family graphs differ by depth,
optimiser, clipping, dropout, rematerialisation, number format or mode, hence in their operations; sizes
that change shapes alone are left at their defaults, for they hardly change what passes do.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from irgym.core.environment import Dataset, dataset_of
from irgym.envs.hlo.families import FAMILIES
from irgym.envs.hlo.programs import parse_program

DEFAULT = "families"
"""The data set to train on and to compare with."""

TEST_FAMILIES = ("vit", "moe", "decode", "resnet50", "densenet", "unet", "gru", "ppo", "pinn")
"""The families that `families` never trains on."""

_OPTIMIZERS = tuple(f"optimizer={name}" for name in ("sgd", "momentum", "lion", "adafactor"))


def _grid(family: str, *axes: Sequence[str]) -> list[str]:
    """Return the canonical URIs of every combination of one query from each axis; an empty query is none."""
    queries = [""]
    for axis in axes:
        queries = ["&".join(filter(None, (query, choice))) for query in queries for choice in axis]
    return [parse_program(f"hlo://{family}?{query}").uri for query in queries]


def _depths(*depths: int, name: str = "layers") -> list[str]:
    return [f"{name}={depth}" for depth in depths]


def _gpt2_train() -> list[str]:
    variants = ("", "dropout=false", *_OPTIMIZERS, "clip=false", "remat=true", "dtype=bf16", "mode=forward")
    return [
        *_grid("gpt2", _depths(1, 2, 3), variants),
        *_grid("gpt2", _depths(5, 7), ("", "dropout=false", "optimizer=sgd", "mode=forward")),
        *_grid("gpt2", _depths(9), ("", "mode=forward")),
    ]


def _gpt2_test() -> list[str]:
    return [
        *_grid("gpt2", _depths(4, 6, 8), ("", "dropout=false", "optimizer=sgd", "mode=forward")),
        *_grid("gpt2", ["layers=10"], ("optimizer=adafactor", "remat=true", "dtype=bf16")),
        *_grid("gpt2", ["layers=12&width=96&heads=12"], ("", "clip=false", "mode=forward")),
        *_grid("gpt2", ["scan=true&layers=4"], ("", "dropout=false", "remat=true", "mode=forward")),
    ]


def _train() -> list[str]:
    plain = ("", "optimizer=sgd", "mode=forward")
    return [
        *_gpt2_train(),
        *_grid(
            "bert",
            _depths(1, 2),
            ("", "dropout=false", *_OPTIMIZERS, "clip=false", "dtype=bf16", "mode=forward"),
        ),
        *_grid("bert", ["scan=true"], ("", "dropout=false", "mode=forward")),
        *_grid("bert", _depths(5, 8), ("", "dropout=false", "mode=forward")),
        *_grid("resnet18", ["depth=1"], ("", *_OPTIMIZERS, "clip=false", "dtype=bf16", "mode=forward")),
        *_grid("mlp", _depths(2, 3, 4), ("", *_OPTIMIZERS, "clip=false", "dropout=true")),
        *_grid("mlp", _depths(2, 3, 4), ("activation=gelu", "activation=silu", "mode=forward")),
        *_grid("llama", _depths(1, 2, 3), (*plain, "remat=true", "dtype=bf16", "optimizer=adafactor")),
        *_grid("llama", ["layers=6"], plain),
        *_grid("llama", ["scan=true"], plain),
        *_grid("t5", _depths(1, 2), (*plain, "optimizer=lion", "clip=false")),
        *_grid("beam", _depths(1, 2, 3, 4), ("", "dtype=bf16")),
        *_grid("beam", ["scan=true"], ("", "dtype=bf16")),
        *_grid("mobilenet", ["depth=1"], (*_OPTIMIZERS, "clip=false", "mode=forward")),
        *_grid("mixer", _depths(1, 2, 3, 4), (*plain, "optimizer=adafactor")),
        *_grid("vae", _depths(1, 2, 3, name="depth"), (*plain, "optimizer=momentum")),
        *_grid("nerf", _depths(1, 2, 3), (*plain, "optimizer=lion")),
        *_grid("lstm", _depths(1, 2, 3), (*plain, "unroll=4", "optimizer=adafactor")),
        *_grid("ssm", ("", "recurrence=loop"), _depths(1, 2), plain),
        *_grid("wavenet", _depths(2, 4, 6), (*plain, "optimizer=momentum")),
        *_grid("dlrm", _depths(2, 4, 8, name="tables"), plain),
        *_grid(
            "gnn",
            [f"aggregate={name}" for name in ("sum", "mean", "max", "attention")],
            _depths(1, 2),
            ("", "optimizer=lion", "mode=forward"),
        ),
        *_grid("maml", _depths(1, 2, 3, name="steps"), plain),
        *_grid("ode", _depths(1, 2), ("", "unroll=4"), plain),
    ]


def _test() -> list[str]:
    plain = ("", "optimizer=sgd", "mode=forward")
    return [
        *_gpt2_test(),
        *_grid("bert", _depths(3, 4, 6), ("", "dropout=false", "optimizer=lion", "mode=forward")),
        *_grid("bert", ["layers=12"], ("", "mode=forward")),
        *_grid("resnet18", _depths(2, 3, name="depth"), (*plain, "optimizer=lion")),
        *_grid("mlp", _depths(5, 6, 8), (*plain, "dropout=true", "activation=gelu")),
        *_grid("vit", _depths(1, 2, 4, 6), (*plain, "dropout=false", "remat=true")),
        *_grid("vit", ["scan=true"], ("", "dropout=false")),
        *_grid("moe", _depths(1, 2, 3), (*plain, "optimizer=lion")),
        *_grid(
            "decode",
            [f"sampling={name}" for name in ("top_k", "greedy", "temperature", "nucleus")],
            (*_depths(1, 2, 4), "scan=true"),
        ),
        *_grid("resnet50", (*plain, "clip=false")),
        *_grid("densenet", _depths(2, 3, 4, name="depth"), plain),
        *_grid("unet", _depths(1, 2, 3, name="levels"), plain),
        *_grid("gru", ("", "bidirectional=true"), _depths(1, 2), (*plain, "unroll=4")),
        *_grid("ppo", ("", "continuous=true"), _depths(1, 2, 3), plain),
        *_grid("pinn", ("", "derivative=forward"), _depths(1, 2, 3), plain),
    ]


def _dataset(name: str, description: str, train: Iterable[str], test: Iterable[str]) -> Dataset:
    return Dataset(name, description, tuple(dict.fromkeys(train)), tuple(dict.fromkeys(test)))


def _families() -> Dataset:
    return _dataset("families", "27 families; families and depths of the splits differ", _train(), _test())


def _gpt2() -> Dataset:
    return _dataset(
        "gpt2", "GPT-2: 1 to 9 layers against 4 to 12, no depth in both", _gpt2_train(), _gpt2_test()
    )


def _tiny() -> Dataset:
    train = ("mlp", "mlp?layers=2&optimizer=sgd", "lstm?mode=forward", "gnn?mode=forward", "vae?mode=forward")
    train = (*train, "dlrm?mode=forward", "beam?layers=1", "maml?optimizer=sgd")
    test = ("mlp?layers=5", "gru?optimizer=sgd", "decode?layers=1", "gpt2?layers=1&mode=forward")
    return _dataset(
        "tiny",
        "small graphs, for trying things out",
        (parse_program(f"hlo://{name}").uri for name in train),
        (parse_program(f"hlo://{name}").uri for name in test),
    )


def _full() -> Dataset:
    modes = ("shape=full", "shape=full&mode=forward")
    uris = (uri for family in FAMILIES for uri in _grid(family, modes))
    return _dataset("full", "every family at its published sizes; nothing to train on", (), uris)


DATASETS: dict[str, Callable[[], Dataset]] = {
    "families": _families,
    "gpt2": _gpt2,
    "tiny": _tiny,
    "full": _full,
}
"""The data sets, the default first."""

dataset = partial(dataset_of, DATASETS)
"""Returns a data set by its name."""
