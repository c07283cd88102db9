"""Settings of the baselines `tensat` and `mcts-geb`."""

from dataclasses import dataclass, field

from irgym.envs.graph.eqsat.choosing import TreeSearch
from irgym.envs.graph.eqsat.saturation import Limits


@dataclass(frozen=True)
class Settings:
    """How equality saturation is run and compared.

    Attributes:
        objective: Objective of the comparison: under `time`, both models are timed in turn; otherwise their
            costs are compared once. Operators are chosen by their times alone, under `nodes` by their number.
        rules: Names of the rules.
        block: Channels of a block in the layout of ONNX Runtime's nchwc operators.
        threads: Threads of an operator.
        rounds: Rounds of timings.
        limits: Limits of the saturation.
        search: Settings of the search for the order of the rules; None for a fixed order.
    """

    objective: str
    rules: tuple[str, ...]
    block: int
    threads: int
    rounds: int
    limits: Limits = field(default_factory=Limits)
    search: TreeSearch | None = None
