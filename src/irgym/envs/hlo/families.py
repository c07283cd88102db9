"""The families of model programs."""

from collections.abc import Mapping
from dataclasses import replace

from irgym.core.uri import Family, Option
from irgym.envs.hlo.parameters import depth, flag, size, word

_SHAPE = (word("shape", "tiny", "full"), word("dtype", "f32", "bf16"))
_INFER = (word("mode", "forward"), *_SHAPE)
_TRAIN = (
    word("mode", "train", "forward"),
    *_SHAPE,
    word("optimizer", "adam", "sgd", "momentum", "lion", "adafactor", training=True),
    flag("clip", True, training=True),
)
_NUMERIC = (word("mode", "forward"), word("shape", "tiny", "full"))
_UNROLL = depth("unroll", 1, 1)
_SCAN = flag("scan", False)
_DEEP = (_SCAN, flag("remat", False, training=True))
_DROP = flag("dropout", True, training=True)
_HEADS = (("width", "heads", 1),)


def _batch(tiny: int, full: int) -> Option:
    return size("batch", tiny, full, high=1 << 14)


def _width(tiny: int, full: int, low: int = 1) -> Option:
    return size("width", tiny, full, low=low, high=1 << 14)


def _attention(layers: int, width: int, heads: int) -> tuple[Option, ...]:
    """Return depth, width and heads of a transformer; those given are the published ones."""
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

_FACTORISING = (
    Family(
        "regression",
        "least squares by several factorisations: the loss on other rows, or its gradient",
        (
            *_NUMERIC,
            word("method", "cholesky", "qr", "svd", "lstsq", "solve", "robust"),
            word("of", "value", "gradient"),
            size("rows", 32, 4096, low=2),
            size("columns", 8, 64, low=2, high=1 << 10),
        ),
        (),
        (("columns", "rows"),),
    ),
    Family(
        "gp",
        "Gaussian process: log likelihood and its derivatives, or predictions",
        (
            *_NUMERIC,
            word("kernel", "rbf", "matern", "rational", "periodic", "sum"),
            word("of", "value", "gradient", "hessian", "prediction"),
            size("points", 16, 1024, low=2, high=1 << 13),
            size("features", 4, 8),
        ),
    ),
    Family(
        "eigen",
        "eigenvalues, by LAPACK or by iteration, or the gradient of a function of them",
        (
            *_NUMERIC,
            word("method", "eigh", "svd", "power", "subspace", "lanczos", "jacobi"),
            word("of", "value", "gradient"),
            depth("steps", 4, 16),
            size("size", 8, 128, low=4, high=1 << 10),
        ),
    ),
    Family(
        "krylov",
        "a linear system by iteration, its matrix dense or a stencil",
        (
            *_NUMERIC,
            word("method", "cg", "preconditioned", "bicgstab", "gmres", "jacobi", "chebyshev"),
            word("matrix", "dense", "stencil"),
            size("size", 6, 32, low=2, high=128),
        ),
    ),
    Family(
        "matfun",
        "a function of a matrix, or the gradient of a sum over it",
        (
            *_NUMERIC,
            word(
                "method",
                "exponential",
                "inverse",
                "determinant",
                "pseudoinverse",
                "polar",
                "root",
            ),
            word("of", "value", "gradient"),
            depth("steps", 4, 8),
            size("size", 8, 128, low=2, high=1 << 11),
        ),
    ),
)

_MODEL = word("model", "hierarchical", "gamma", "student", "mixture", "counts", "logistic")

_SAMPLING = (
    Family(
        "density",
        "log density of a Bayesian model, its gradient or curvature",
        (
            *_NUMERIC,
            _MODEL,
            word("of", "value", "gradient", "hessian"),
            size("features", 8, 32, low=6),
            size("rows", 16, 1024, low=2),
        ),
    ),
    Family(
        "mcmc",
        "Markov chain on the density of a Bayesian model",
        (
            *_NUMERIC,
            word("kernel", "hmc", "walk", "langevin", "slice", "coordinates"),
            _MODEL,
            size("steps", 4, 1000),
            size("leaps", 3, 10),
            _UNROLL,
            size("features", 8, 32, low=6),
            size("rows", 16, 1024, low=2),
        ),
    ),
    Family(
        "particles",
        "particle filter: log likelihood and means",
        (
            *_NUMERIC,
            word("resampling", "systematic", "stratified", "multinomial", "residual", "categorical"),
            word("model", "volatility", "growth"),
            flag("adaptive", False),
            _UNROLL,
            size("particles", 32, 4096, low=2),
            size("length", 8, 256, low=2),
        ),
    ),
    Family(
        "bootstrap",
        "intervals of a statistic by resampling",
        (
            *_NUMERIC,
            word("method", "bootstrap", "jackknife", "permutation"),
            word("statistic", "sharpe", "median", "correlation", "trimmed", "slope", "skewness"),
            size("rows", 32, 512, low=4, high=1 << 14),
            size("repeats", 16, 1000),
        ),
    ),
    Family(
        "variates",
        "random variates of a distribution, with summaries",
        (
            *_NUMERIC,
            word(
                "law",
                "normal",
                "gamma",
                "beta",
                "dirichlet",
                "poisson",
                "student",
                "categorical",
                "multivariate",
                "permutation",
                "truncated",
            ),
            size("count", 16, 4096, low=2),
            size("width", 8, 16, low=2, high=1 << 10),
        ),
    ),
    Family(
        "pricing",
        "price of an option by simulation or formula, or its sensitivities",
        (
            *_NUMERIC,
            word("payoff", "european", "asian", "barrier", "lookback", "formula"),
            word("volatility", "constant", "heston"),
            word("of", "value", "gradient", "hessian"),
            _UNROLL,
            size("steps", 8, 256),
            size("paths", 32, 65536),
        ),
    ),
)

_SOLVING = (
    Family(
        "integrate",
        "ordinary differential equations: the end of a trajectory, or its derivatives",
        (
            *_NUMERIC,
            word("method", "rk4", "euler", "heun", "implicit", "rosenbrock", "adaptive"),
            word("system", "lorenz", "pendulums", "predators", "reactions"),
            word("of", "value", "jacobian", "gradient"),
            _UNROLL,
            size("steps", 8, 1000),
            _batch(4, 256),
        ),
    ),
    Family(
        "nbody",
        "particles that attract or repel each other",
        (
            *_NUMERIC,
            word("force", "gravity", "springs", "lennard", "periodic"),
            word("derivative", "automatic", "manual"),
            _UNROLL,
            size("steps", 4, 1000),
            size("bodies", 8, 256, low=2, high=1 << 11),
        ),
    ),
    Family(
        "minimise",
        "minimisation of a smooth function",
        (
            *_NUMERIC,
            word("method", "newton", "trust", "bfgs", "limited", "conjugate"),
            word("objective", "valley", "decays", "barrier"),
            size("steps", 4, 100),
            size("size", 6, 64, low=2, high=1 << 10),
            size("rows", 8, 256),
        ),
    ),
    Family(
        "stencil",
        "partial differential equation, or cellular automaton, on a grid",
        (
            *_NUMERIC,
            word("equation", "heat", "wave", "reaction", "burgers", "advection", "life"),
            word("boundary", "periodic", "fixed", "mirror"),
            word("of", "value", "gradient"),
            _UNROLL,
            size("steps", 4, 1000),
            size("size", 16, 512, low=3, high=1 << 13),
        ),
    ),
    Family(
        "lattice",
        "fluid by the lattice Boltzmann method (Qian et al., 1992)",
        (
            *_NUMERIC,
            word("collision", "one", "two", "smagorinsky"),
            flag("obstacle", False),
            _UNROLL,
            size("steps", 4, 1000),
            size("size", 12, 256, low=3, high=1 << 12),
        ),
    ),
    Family(
        "transport",
        "optimal transport with entropy (Cuturi, arXiv 1306.0895)",
        (
            *_NUMERIC,
            word("domain", "logarithmic", "scaling"),
            word("cost", "squares", "euclidean", "cosine"),
            word("of", "value", "gradient"),
            _UNROLL,
            size("points", 16, 512, low=2, high=1 << 13),
            size("features", 4, 16),
        ),
    ),
    Family(
        "gas",
        "Euler equations of a gas by finite volumes",
        (
            *_NUMERIC,
            word("limiter", "minmod", "vanleer", "superbee", "none"),
            word("flux", "rusanov", "hll"),
            depth("order", 2, 2, high=2),
            _UNROLL,
            size("steps", 4, 1000),
            size("cells", 32, 4096, low=4),
        ),
    ),
)

_SIGNALS = (
    Family(
        "spectrum",
        "what is read off the Fourier transform of a signal, or a gradient through it",
        (
            *_NUMERIC,
            word("method", "lowpass", "envelope", "autocorrelation", "welch", "stft", "mel", "cepstrum"),
            word("of", "value", "gradient"),
            size("bands", 8, 40, low=2, high=256),
            size("frame", 32, 512, low=4, high=1 << 13),
            size("length", 128, 16000, low=8, high=1 << 20),
        ),
        (),
        (("frame", "length"),),
    ),
    Family(
        "filters",
        "digital filter of several channels, or the gradient by its weights",
        (
            *_NUMERIC,
            word(
                "method", "recursive", "fir", "median", "polynomial", "resampled", "adaptive", "associative"
            ),
            word("of", "value", "gradient"),
            depth("sections", 2, 4, high=16),
            _UNROLL,
            size("taps", 5, 15, low=3, high=15),
            size("channels", 4, 8, high=8),
            size("length", 32, 16000, low=16, high=1 << 20),
        ),
    ),
    Family(
        "kalman",
        "Kalman filter: estimates and log likelihood, or its gradient",
        (
            *_NUMERIC,
            word("method", "plain", "joseph", "information", "extended", "unscented", "smoother"),
            word("of", "value", "gradient"),
            _UNROLL,
            size("states", 4, 16, low=2, high=256),
            size("outputs", 2, 8, high=256),
            size("length", 8, 512, low=2),
        ),
    ),
    Family(
        "wavelet",
        "wavelet transform, or a signal without its small coefficients",
        (
            *_NUMERIC,
            word("basis", "haar", "daubechies", "symlet"),
            word("threshold", "none", "soft", "hard"),
            depth("levels", 2, 5, high=6),
            size("channels", 2, 8),
            Option("length", 64, 1 << 20, 64, multiple=64, presets=(("full", 4096),)),
        ),
    ),
    Family(
        "picture",
        "operation on images",
        (
            *_NUMERIC,
            word(
                "operation",
                "sobel",
                "blur",
                "bilateral",
                "canny",
                "equalise",
                "corners",
                "rotate",
                "morphology",
                "threshold",
                "resize",
            ),
            size("pixels", 16, 512, low=8, high=1 << 12),
            _batch(2, 8),
        ),
    ),
)

_ORDERING = (
    Family(
        "sorting",
        "rows of numbers in order, and values that go with them",
        (
            *_NUMERIC,
            word(
                "method",
                "sort",
                "argsort",
                "lexsort",
                "pairs",
                "top",
                "partition",
                "rank",
                "bitonic",
                "radix",
                "transposition",
            ),
            flag("batched", True),
            depth("bits", 4, 4, high=8),
            size("rows", 4, 64),
            Option("count", 32, 1 << 14, 8, multiple=8, presets=(("full", 1024),)),
        ),
    ),
    Family(
        "grouping",
        "statistics of groups: segments, histograms, distinct values, joins",
        (
            *_NUMERIC,
            word(
                "method",
                "moments",
                "extremes",
                "softmax",
                "histogram",
                "plane",
                "unique",
                "join",
                "runs",
                "quantiles",
            ),
            size("groups", 8, 64, low=2, high=1 << 10),
            size("width", 8, 64, low=2, high=1 << 10),
            size("rows", 32, 4096, low=2),
        ),
    ),
    Family(
        "clusters",
        "clusters of points, or their nearest neighbours",
        (
            *_NUMERIC,
            word("method", "means", "medians", "mixture", "density", "shift", "neighbours", "linkage"),
            _UNROLL,
            size("points", 24, 512, low=4, high=1 << 12),
            size("features", 4, 16, low=2, high=1 << 10),
            size("clusters", 3, 16, low=2, high=1 << 10),
        ),
        (),
        (("clusters", "points"),),
    ),
    Family(
        "alignment",
        "dynamic programming along sequences",
        (
            *_NUMERIC,
            word("method", "viterbi", "forward", "edit", "local", "warping", "knapsack"),
            _UNROLL,
            size("length", 12, 256, low=2, high=1 << 12),
            size("states", 6, 32, low=2, high=1 << 10),
        ),
    ),
    Family(
        "paths",
        "algorithms on graphs, as lists of edges or matrices",
        (
            *_NUMERIC,
            word("method", "shortest", "all", "rank", "components", "breadth", "tree", "triangles"),
            _UNROLL,
            size("nodes", 16, 256, low=2, high=1 << 11),
            size("edges", 48, 2048, high=1 << 20),
        ),
    ),
    Family(
        "hashing",
        "integer arithmetic: hashes, checksums, generators, codes",
        (
            *_NUMERIC,
            word("method", "murmur", "checksum", "quarters", "xorshift", "morton", "bloom"),
            depth("rounds", 1, 4, high=16),
            size("rows", 16, 4096, low=2),
        ),
    ),
    Family(
        "fractal",
        "points of a plane under an iterated map",
        (
            *_NUMERIC,
            word("method", "mandelbrot", "julia", "newton", "ship", "cubic"),
            word("loop", "counted", "while", "unrolled"),
            depth("steps", 6, 50),
            size("pixels", 16, 512, low=2, high=1 << 12),
        ),
    ),
)

NUMERIC: tuple[str, ...] = tuple(
    family.name for family in (*_FACTORISING, *_SAMPLING, *_SOLVING, *_SIGNALS, *_ORDERING)
)
"""Names of the families that are no networks."""

FAMILIES: Mapping[str, Family] = {
    family.name: replace(family, presets="shape")
    for family in (
        *_TRANSFORMERS,
        *_IMAGES,
        *_SEQUENCES,
        *_OTHERS,
        *_FACTORISING,
        *_SAMPLING,
        *_SOLVING,
        *_SIGNALS,
        *_ORDERING,
    )
}
"""The families, by name."""
