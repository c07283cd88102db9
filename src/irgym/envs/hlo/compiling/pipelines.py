"""XLA's default orders of passes, the baselines of results.

Both are reconstructed from the passes that jaxlib logs while compiling for the CPU
(TF_CPP_VMODULE=hlo_pass_pipeline=1), up to layout assignment. `core` has the target-independent
simplifications; `cpu` has all passes, including the expansions for XLA:CPU's code generator.
"""

from dataclasses import dataclass

from irgym.core.actions import Action
from irgym.core.schedule import Schedule
from irgym.core.task import Task
from irgym.envs.hlo.actions import KIND, PASSES
from irgym.envs.hlo.state import HloState

ROUNDS = 25
"""Repetitions after which XLA stops looking for a fixpoint."""

MERGING = "computation-deduplicator"
"""A pass of irgym, which neither order contains."""


@dataclass(frozen=True)
class Order:
    """Stages of passes, run once and to a fixpoint in turn.

    Attributes:
        name: Name in tables.
        summary: One line.
        stages: Passes by stage; the second, fourth, ... stage runs until no pass changes anything.
    """

    name: str
    summary: str
    stages: tuple[tuple[str, ...], ...]


_CORE_SIMPLIFICATION = (
    "algsimp simplify-sorts dce zero-sized-hlo-elimination while-loop-invariant-code-motion tuple-simplifier "
    "while-loop-constant-sinking simplify-while-loops dce reshape-mover constant-folding simplify-conditional"
)

_CPU_SIMPLIFICATION = (
    "algsimp simplify-sorts dce gather-expander-simple gather-simplifier tree-reduction-rewriter "
    "zero-sized-hlo-elimination while-loop-invariant-code-motion tuple-simplifier "
    "while-loop-constant-sinking simplify-while-loops dce reshape-mover constant-folding simplify-conditional"
)


def _order(name: str, summary: str, *stages: str) -> Order:
    return Order(name, summary, tuple(tuple(stage.split()) for stage in stages))


CORE = _order(
    "core",
    "XLA's target-independent passes in their default order, to their fixpoint",
    "dce zero-sized-hlo-elimination conditional-to-select map-inline call-inliner batch-dot-simplification "
    "dot-decomposer batch-dot-simplification conditional-canonicalizer dynamic-dimension-simplifier",
    _CORE_SIMPLIFICATION,
    "transpose-folding cse tuple-simplifier",
)

CPU = _order(
    "cpu",
    "XLA:CPU's passes in their default order, up to the assignment of layouts",
    "flatten-call-graph dce batched-gather-scatter-normalizer result-caster dot-decomposer operand-upcaster "
    "rng-expander rng-bit-generator-expander zero-sized-hlo-elimination dynamic-index-splitter "
    "conditional-to-select map-inline topk-decomposer comparison-expander cholesky-expander qr-expander "
    "eigh-expander triangular-solve-expander stochastic-convert-decomposer call-inliner "
    "batch-dot-simplification dot-decomposer batch-dot-simplification convolution-group-converter "
    "batchnorm-expander logistic-expander conditional-canonicalizer dynamic-dimension-simplifier "
    "reduce-window-rewriter reduce-window-resizer dynamic-padder",
    _CPU_SIMPLIFICATION,
    "select-and-scatter-expander scatter-expander",
    _CPU_SIMPLIFICATION,
    "bitcast-dtypes-expander topk-rewriter transpose-folding cse optimization-barrier-expander "
    "tuple-simplifier while-loop-trip-count-annotator flatten-call-graph",
)

ORDERS = {order.name: order for order in (CORE, CPU)}
"""The default orders by name."""

FINISHING = Order("finishing", "`core`, then equal computations kept once", (*CORE.stages, (MERGING,)))
"""Passes after a policy's episode: inlining leaves copies of the computations that reductions call."""


def schedule_of(order: Order, task: Task[HloState], start: HloState | None = None) -> Schedule:
    """Return the passes of an order that change the program, in order; there may be more than the horizon.

    Args:
        order: The order.
        task: The program.
        start: Initial state; by default the original program.
    """
    state = begun = task.initial() if start is None else start
    for number, stage in enumerate(order.stages):
        for _ in range(ROUNDS if number % 2 else 1):
            before = state.path
            for name in stage:
                state = _stepped(task, state, name)
            if state.path == before:
                break
    return Schedule(tuple(Action(kind) for kind in state.path[len(begun.path) :]))


def _stepped(task: Task[HloState], state: HloState, name: str) -> HloState:
    """Return the state after a pass, if it may change anything."""
    action = Action(KIND[name])
    return task.step(state, action) if task.space.allows(task.mask(state), action) else state


assert all(name in KIND for order in ORDERS.values() for stage in order.stages for name in stage), PASSES
