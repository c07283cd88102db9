"""The environment: programs, data sets, observations, and what measures them."""

import random
import re

from irgym.base.errors import ProgramError
from irgym.core.bench import Bench
from irgym.core.dataset import Dataset
from irgym.core.datasets import DatasetSpec
from irgym.core.environment import BackendStatus, Environment, check_only_backend
from irgym.core.reward import LogSpeedup
from irgym.core.target import Target
from irgym.measure.bench import MeasuringBench
from irgym_chain.task import MAX_DIMS, ChainTask


class ChainEnvironment(Environment):
    """Orders of matrix products."""

    name = "chain"
    summary = "order of a chain of matrix products; cost: scalar multiplications"
    default_dataset = "random"
    default_reward = LogSpeedup()
    objectives = ChainTask.objectives

    def backends(self) -> list[BackendStatus]:
        return [BackendStatus("count", True, "counts multiplications")]

    def task(
        self,
        uri: str,
        backend: str | None = None,
        target: Target | str | None = None,
        objective: str | None = None,
    ) -> ChainTask:
        del target  # counts of multiplications depend on none
        check_only_backend(self.name, backend, "count")
        match = re.fullmatch(r"chain://(\d{1,6}(?:x\d{1,6})+)", uri)
        dims = tuple(map(int, match.group(1).split("x"))) if match else ()
        if not 3 <= len(dims) <= MAX_DIMS or min(dims) < 1:
            raise ProgramError(f"{uri!r} is no chain: write 3 to {MAX_DIMS} sizes, as in chain://10x30x5x60")
        return ChainTask(dims).under(objective)

    def dataset_names(self) -> list[str]:
        return ["random"]

    def dataset(self, name: str) -> Dataset:
        if name != "random":
            raise ProgramError(f"there is no data set {name!r}: choose random")
        rng = random.Random(0)
        uris = tuple("chain://" + "x".join(str(rng.randint(1, 64)) for _ in range(6)) for _ in range(200))
        return Dataset("random", "random chains of five matrices", train=uris[20:], test=uris[:20])

    def bench(self, farm: str | None = None, backend: str | None = None) -> Bench:
        return MeasuringBench(farm=farm)


def long_chains() -> list[str]:
    rng = random.Random(1)
    return ["chain://" + "x".join(str(rng.randint(1, 64)) for _ in range(MAX_DIMS)) for _ in range(50)]


LONG_CHAINS = DatasetSpec("chain", long_chains, description="random chains of eleven matrices")
CHAIN = ChainEnvironment()
