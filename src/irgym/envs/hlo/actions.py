"""The actions: XLA's passes under XLA's names, some preceded by a pass that they need, and `stop`."""

from dataclasses import dataclass

from irgym.core.actions import ActionSpace
from irgym.core.kinds import ActionKind


@dataclass(frozen=True)
class PassAction:
    """An action that runs one or more of the engine's passes.

    Attributes:
        name: Name of the action.
        summary: One line.
        passes: Names of the engine's passes, in order.
    """

    name: str
    summary: str
    passes: tuple[str, ...]


def _single(name: str, summary: str) -> PassAction:
    return PassAction(name, summary, (name,))


NORMALISER = "batched-gather-scatter-normalizer"
"""Gather and scatter simplifiers abort on batch dimensions that this pass has not removed."""

PASSES = (
    _single("algsimp", "algebraic identities, as XLA:CPU sets them before layouts are assigned"),
    _single("algsimp-fixpoint", "algebraic simplification until nothing changes"),
    _single("algsimp-reassociate", "algebraic simplification; chains of additions and products reordered"),
    _single("batch-dot-simplification", "removes batch dimensions of size 1 from dots"),
    _single(NORMALISER, "rewrites batch dimensions of gathers and scatters as index dimensions"),
    _single("batchnorm-expander", "batch normalisation as elementary operations"),
    _single("bitcast-dtypes-expander", "bitcasts between widths as shifts and masks"),
    _single("broadcast-canonicalizer", "broadcast dimensions in ascending order, with a transpose after"),
    _single("call-inliner", "inlines called computations"),
    _single("cholesky-expander", "Cholesky decomposition as a loop"),
    _single("comparison-expander", "total-order comparisons of floats as comparisons of integers"),
    _single("computation-deduplicator", "equal computations kept once, but for those of loops and branches"),
    _single("conditional-canonicalizer", "conditionals return tuples"),
    _single("conditional-to-select", "conditionals without side effects within maps become selects"),
    _single("constant-folding", "evaluates operations on constants, unless slow or large"),
    _single("convolution-group-converter", "grouped convolutions as ungrouped ones"),
    _single("cse", "common subexpressions computed once"),
    _single("dce", "removes what no result needs"),
    _single("dot-decomposer", "dots in canonical form: transposes and reshapes made explicit"),
    _single("dynamic-dimension-simplifier", "simplifies sizes of dynamic dimensions"),
    _single("dynamic-index-splitter", "vector indices of dynamic slices as scalars"),
    _single("dynamic-padder", "dynamic shapes as static ones with padding"),
    _single("eigh-expander", "symmetric eigendecomposition as Jacobi sweeps"),
    _single("flatten-call-graph", "a copy of each called computation for each caller"),
    _single("gather-expander", "every gather as a loop of dynamic slices"),
    _single("gather-expander-simple", "gathers of one slice as dynamic slices"),
    PassAction(
        "gather-simplifier",
        "gathers with one index vector per row",
        (NORMALISER, "gather-simplifier"),
    ),
    _single("logistic-expander", "the logistic function as exponential and division"),
    _single("map-inline", "maps of single operations as these operations"),
    _single("operand-upcaster", "dots and convolutions of narrow types on wider operands"),
    _single("optimization-barrier-expander", "removes optimisation barriers"),
    _single("qr-expander", "QR decomposition as Householder reflections"),
    _single("reduce-window-resizer", "one-dimensional windows as two-dimensional ones"),
    _single("reduce-window-rewriter", "long cumulative windows as blocks of 32"),
    _single("reshape-mover", "moves reshapes and transposes below elementwise operations, where they meet"),
    _single("reshape-mover-broadcasts", "as reshape-mover, reshapes of broadcasts included"),
    _single("result-caster", "dots and convolutions of narrow types cast after, not within"),
    _single("rng-bit-generator-expander", "random bit generators as Philox arithmetic"),
    _single("rng-expander", "random distributions as arithmetic on random bits"),
    _single("scatter-expander", "every scatter as a loop of updates"),
    _single("scatter-expander-simple", "scatters of one update as dynamic update slices"),
    PassAction(
        "scatter-simplifier",
        "scatters with one index per update row",
        (NORMALISER, "scatter-simplifier"),
    ),
    _single("select-and-scatter-expander", "select-and-scatter as windowed reduction and scatter"),
    _single("simplify-conditional", "conditionals with known or equal branches; unused operands removed"),
    _single("simplify-fp-conversions", "removes pairs of conversions between float widths"),
    _single("simplify-sorts", "removes operands that a sort does not use"),
    _single("simplify-while-loops", "loops with unused, constant or few iterations simplified"),
    _single("slice-sinker", "slices below elementwise operations that share them"),
    _single("small-while-loop-hoisting", "small loops into called computations"),
    _single("stochastic-convert-decomposer", "stochastic rounding as arithmetic on random bits"),
    _single("topk-decomposer", "top-k as a sort and slices"),
    _single("topk-rewriter", "sorts and slices of the first k as top-k"),
    _single("transpose-folding", "transposes into dots and convolutions"),
    _single("tree-reduction-rewriter", "long reductions as windowed reductions"),
    _single("triangular-solve-expander", "triangular solves as blocked substitution"),
    _single("tuple-simplifier", "removes tuples that are taken apart again"),
    _single("while-loop-constant-sinking", "constants carried by loops into their bodies"),
    _single("while-loop-invariant-code-motion", "loop-invariant computations moved out of loops"),
    _single("while-loop-trip-count-annotator", "notes known numbers of iterations"),
    _single("zero-sized-hlo-elimination", "arrays without elements as constants"),
)
"""All actions but `stop`.

Three kinds of passes are left out:

- Passes for several devices: single-device modules have nothing for them to change.
- Aggressive constant folding: it takes up to a minute on a full-size model.
- The decomposers of reshapes and reductions: they put layouts into copies. The layout-insensitive passes that
  run before layout assignment remove those copies, which changes the result. XLA runs the decomposers only
  after layout assignment.
"""

STOP = len(PASSES)
"""Kind of the action that ends a schedule."""

SPACE = ActionSpace((*(ActionKind(action.name) for action in PASSES), ActionKind("stop", ends="episode")))
"""The action space: no kind has parameters."""

KIND = {action.name: kind for kind, action in enumerate(PASSES)}
"""Kind of each action's name."""

HORIZON = 32
"""Steps of an episode; the core order takes about 22 effective ones on a deep model."""
