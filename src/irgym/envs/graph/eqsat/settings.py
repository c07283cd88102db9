"""Settings and options of the baselines `tensat` and `mcts-geb`."""

from dataclasses import dataclass, field
from typing import Annotated

from irgym.base.values import Range
from irgym.core.baseline import TIMEOUT_S
from irgym.envs.graph.eqsat.choosing import TreeSearch
from irgym.envs.graph.eqsat.extraction import EXTRACTION_S, Method
from irgym.envs.graph.eqsat.saturation import Limits


@dataclass(frozen=True)
class SaturationOptions:
    """Options of `tensat`, the limits among them: `tensat:nodes=10000,extraction=greedy`.

    Attributes:
        limits: Limits of the saturation: Tensat's `n_nodes`, `n_iter`, `iter_multi` and `n_sec`.
        extraction: Method of extraction; Tensat's `extract`.
        extraction_s: Time limit of the integer linear program, in seconds; Tensat's `ilp_time_sec`.
    """

    limits: Limits = field(default_factory=Limits)
    extraction: Method = "ilp"
    extraction_s: Annotated[float, Range(0.0, 1e6)] = EXTRACTION_S

    @property
    def timeout_s(self) -> float:
        """Time limit in seconds: `TIMEOUT_S`, and longer by what the options add to their defaults."""
        longer = self.limits.seconds - Limits.seconds, self.extraction_s - EXTRACTION_S
        return TIMEOUT_S + sum(max(0.0, seconds) for seconds in longer)


@dataclass(frozen=True)
class TreeSearchOptions(SaturationOptions):
    """Options of `mcts-geb`: those of `tensat` and of the tree search, as in `mcts-geb:budget=128`.

    Attributes:
        search: Settings of the search for the order of the rules. Its `budget` and `depth` are MCTS-GEB's
            `budget` and `max_sim_step`.
    """

    search: TreeSearch = field(default_factory=TreeSearch)


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
        options: Options of the baseline; those of a tree search where one chooses the order of the rules.
    """

    objective: str
    rules: tuple[str, ...]
    block: int
    threads: int
    rounds: int
    options: SaturationOptions

    @property
    def search(self) -> TreeSearch | None:
        """Settings of the search for the order of the rules; None for a fixed order."""
        return self.options.search if isinstance(self.options, TreeSearchOptions) else None
