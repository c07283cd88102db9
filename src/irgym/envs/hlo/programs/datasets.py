"""Data sets of programs, each with a fixed split into training and test programs.

`families`, the default, is the union of `networks` and `numerics`.

`networks` has training steps and forward passes of neural networks. Its split:

- Nine families are in the test split only: vit, moe, decode, resnet50, densenet, unet, gru, ppo, pinn.
- Four are in both splits, at disjoint depths: gpt2 (1, 2, 3, 5, 7 and 9 layers against 4, 6, 8, 10 and 12),
  bert (1, 2, 5 and 8 against 3, 4, 6 and 12), resnet18 (stages of 1 block against 2 and 3), mlp (up to 4
  layers against 5 to 8). A scan over layers hides the depth, so gpt2 has scans in the test split only and
  bert in the training split only.
- The other fourteen are in the training split only.

Training programs have fewer than 9,000 operations before any pass. The programs of a family differ in
operations: by depth, optimiser, clipping, dropout, rematerialisation, number format or mode. Sizes that
change only shapes keep their defaults, as they hardly affect passes.

`numerics` has numerical code. It is split by families: two of each group are in the test split only (gp,
matfun; particles, pricing; minimise, gas; kalman, picture; clusters, alignment), the other twenty in the
training split only. The programs of a family differ by method, model, derivative or unrolling.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from irgym.core.dataset import Dataset, dataset_of
from irgym.envs.hlo.programs.families import FAMILIES
from irgym.envs.hlo.programs.uris import parse_program

DEFAULT = "families"
"""Name of the default data set, for training and comparison."""

TEST_NETWORKS = ("vit", "moe", "decode", "resnet50", "densenet", "unet", "gru", "ppo", "pinn")
"""The families that `networks` never trains on."""

TEST_NUMERICS = (
    "gp",
    "matfun",
    "particles",
    "pricing",
    "minimise",
    "gas",
    "kalman",
    "picture",
    "clusters",
    "alignment",
)
"""The families that `numerics` never trains on."""

TEST_FAMILIES = (*TEST_NETWORKS, *TEST_NUMERICS)
"""The families that `families` never trains on."""

_OPTIMIZERS = tuple(f"optimizer={name}" for name in ("sgd", "momentum", "lion", "adafactor"))


def _grid(family: str, *axes: Sequence[str]) -> list[str]:
    """Return the canonical URIs of all combinations of a query from each axis; a query may be empty."""
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


def _words(name: str, *values: str) -> list[str]:
    return [f"{name}={value}" for value in values]


def _all(family: str, name: str) -> list[str]:
    """Return a query for each choice of an option of a family."""
    return _words(name, *next(option.choices for option in FAMILIES[family].options if option.name == name))


def _numeric_train() -> list[str]:
    slopes = _words("of", "value", "gradient")
    return [
        *_grid("regression", _all("regression", "method"), slopes),
        *_grid("eigen", _all("eigen", "method"), slopes),
        *_grid("krylov", _all("krylov", "method"), _all("krylov", "matrix")),
        *_grid("density", _all("density", "model"), _all("density", "of")),
        *_grid("mcmc", _all("mcmc", "model")),
        *_grid(
            "mcmc",
            _words("kernel", "walk", "langevin", "slice", "coordinates"),
            _words("model", "hierarchical", "student"),
        ),
        *_grid("mcmc", ["kernel=walk&unroll=4"]),
        *_grid("bootstrap", _all("bootstrap", "statistic")),
        *_grid("bootstrap", ["method=jackknife"], _words("statistic", "median", "trimmed", "slope")),
        *_grid("bootstrap", ["method=permutation"], _words("statistic", "correlation", "trimmed")),
        *_grid("variates", _all("variates", "law")),
        *_grid("integrate", _all("integrate", "system"), _words("of", "value", "jacobian")),
        *_grid("integrate", _all("integrate", "method"), _words("system", "lorenz", "reactions")),
        *_grid("integrate", _all("integrate", "system"), ["method=heun&of=gradient"]),
        *_grid("integrate", ["unroll=4", "method=adaptive&of=gradient"]),
        *_grid("nbody", _all("nbody", "force"), _all("nbody", "derivative")),
        *_grid("nbody", ["unroll=2"], _words("force", "gravity", "lennard")),
        *_grid("stencil", _words("equation", "heat", "wave", "reaction", "burgers", "advection"), slopes),
        *_grid("stencil", _words("equation", "wave", "burgers"), _words("boundary", "fixed", "mirror")),
        *_grid("stencil", ["equation=life", "equation=reaction&unroll=4"]),
        *_grid("lattice", _all("lattice", "collision"), ("", "obstacle=true")),
        *_grid("transport", _all("transport", "domain"), _all("transport", "cost"), slopes),
        *_grid("spectrum", _all("spectrum", "method"), slopes),
        *_grid("filters", _all("filters", "method"), slopes),
        *_grid("filters", ["sections=4", "unroll=4"]),
        *_grid("wavelet", _all("wavelet", "basis"), _all("wavelet", "threshold")),
        *_grid("wavelet", ["levels=4"], _words("threshold", "none", "soft")),
        *_grid("sorting", _all("sorting", "method")),
        *_grid("sorting", ["batched=false"], _words("method", "argsort", "bitonic", "radix")),
        *_grid("grouping", _all("grouping", "method")),
        *_grid("paths", _all("paths", "method")),
        *_grid("hashing", _all("hashing", "method")),
        *_grid("hashing", ["rounds=3"], _words("method", "murmur", "quarters", "morton")),
        *_grid("fractal", _all("fractal", "method")),
        *_grid("fractal", ["loop=while", "loop=unrolled"], _words("method", "mandelbrot", "newton", "ship")),
    ]


def _numeric_test() -> list[str]:
    slopes = _words("of", "value", "gradient")
    return [
        *_grid("gp", _all("gp", "kernel"), _words("of", "value", "gradient", "prediction")),
        *_grid("gp", ["of=hessian"], _words("kernel", "rbf", "matern")),
        *_grid("matfun", _all("matfun", "method"), slopes),
        *_grid("particles", _all("particles", "resampling")),
        *_grid("particles", ["model=growth"], _words("resampling", "systematic", "multinomial")),
        *_grid("particles", ["adaptive=true", "adaptive=true&resampling=residual"]),
        *_grid("pricing", _words("payoff", "european", "asian", "barrier", "lookback"), slopes),
        *_grid(
            "pricing", ["volatility=heston"], _words("payoff", "european", "asian"), _all("pricing", "of")
        ),
        *_grid("pricing", ["payoff=formula"], _all("pricing", "of")),
        *_grid("minimise", _all("minimise", "method"), _all("minimise", "objective")),
        *_grid("gas", _all("gas", "limiter"), _all("gas", "flux")),
        *_grid("gas", ["order=1", "unroll=2"]),
        *_grid("kalman", _all("kalman", "method")),
        *_grid(
            "kalman",
            ["of=gradient"],
            _words("method", "plain", "joseph", "information", "extended", "unscented"),
        ),
        *_grid("picture", _all("picture", "operation")),
        *_grid("clusters", _all("clusters", "method")),
        *_grid("clusters", ["unroll=5"], _words("method", "means", "mixture")),
        *_grid("alignment", _all("alignment", "method")),
        *_grid("alignment", ["unroll=4"], _words("method", "viterbi", "warping")),
    ]


def _dataset(name: str, description: str, train: Iterable[str], test: Iterable[str]) -> Dataset:
    return Dataset(name, description, tuple(dict.fromkeys(train)), tuple(dict.fromkeys(test)))


def _families() -> Dataset:
    return _dataset(
        "families",
        "57 families of networks and other code; families and depths of the splits differ",
        (*_train(), *_numeric_train()),
        (*_test(), *_numeric_test()),
    )


def _networks() -> Dataset:
    return _dataset(
        "networks", "27 families of networks; families and depths of the splits differ", _train(), _test()
    )


def _numerics() -> Dataset:
    return _dataset(
        "numerics",
        "30 families of numerical code; none is in both splits",
        _numeric_train(),
        _numeric_test(),
    )


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
    return _dataset("full", "every family at full sizes; nothing to train on", (), uris)


DATASETS: dict[str, Callable[[], Dataset]] = {
    "families": _families,
    "networks": _networks,
    "numerics": _numerics,
    "gpt2": _gpt2,
    "tiny": _tiny,
    "full": _full,
}
"""The data sets by name, the default first."""

dataset = partial(dataset_of, DATASETS)
"""Returns the data set of a name."""
