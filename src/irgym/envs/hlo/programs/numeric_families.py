"""The families of numerical programs."""

from irgym.core.uri import Family, Option
from irgym.envs.hlo.programs.parameters import depth, flag, size, word

_COMMON = (word("mode", "forward"), word("shape", "tiny", "full"))
_UNROLL = depth("unroll", 1, 1)

_FACTORISING = (
    Family(
        "regression",
        "least squares by several factorisations: the loss on other rows, or its gradient",
        (
            *_COMMON,
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
            *_COMMON,
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
            *_COMMON,
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
            *_COMMON,
            word("method", "cg", "preconditioned", "bicgstab", "gmres", "jacobi", "chebyshev"),
            word("matrix", "dense", "stencil"),
            size("size", 6, 32, low=2, high=128),
        ),
    ),
    Family(
        "matfun",
        "a function of a matrix, or the gradient of a sum over it",
        (
            *_COMMON,
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
            *_COMMON,
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
            *_COMMON,
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
            *_COMMON,
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
            *_COMMON,
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
            *_COMMON,
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
            *_COMMON,
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
            *_COMMON,
            word("method", "rk4", "euler", "heun", "implicit", "rosenbrock", "adaptive"),
            word("system", "lorenz", "pendulums", "predators", "reactions"),
            word("of", "value", "jacobian", "gradient"),
            _UNROLL,
            size("steps", 8, 1000),
            size("batch", 4, 256, high=1 << 14),
        ),
    ),
    Family(
        "nbody",
        "particles that attract or repel each other",
        (
            *_COMMON,
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
            *_COMMON,
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
            *_COMMON,
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
            *_COMMON,
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
            *_COMMON,
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
            *_COMMON,
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
        "a function of the Fourier transform of a signal, or its gradient",
        (
            *_COMMON,
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
            *_COMMON,
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
            *_COMMON,
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
            *_COMMON,
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
            *_COMMON,
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
            size("batch", 2, 8, high=1 << 14),
        ),
    ),
)

_ORDERING = (
    Family(
        "sorting",
        "rows of numbers in order, and values that go with them",
        (
            *_COMMON,
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
            *_COMMON,
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
            *_COMMON,
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
            *_COMMON,
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
            *_COMMON,
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
            *_COMMON,
            word("method", "murmur", "checksum", "quarters", "xorshift", "morton", "bloom"),
            depth("rounds", 1, 4, high=16),
            size("rows", 16, 4096, low=2),
        ),
    ),
    Family(
        "fractal",
        "points of a plane under an iterated map",
        (
            *_COMMON,
            word("method", "mandelbrot", "julia", "newton", "ship", "cubic"),
            word("loop", "counted", "while", "unrolled"),
            depth("steps", 6, 50),
            size("pixels", 16, 512, low=2, high=1 << 12),
        ),
    ),
)

NUMERIC_FAMILIES = (*_FACTORISING, *_SAMPLING, *_SOLVING, *_SIGNALS, *_ORDERING)
"""The families."""

NUMERIC = tuple(family.name for family in NUMERIC_FAMILIES)
"""Their names."""
