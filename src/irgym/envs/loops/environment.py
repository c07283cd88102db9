"""The environment that `irgym` commands and Gymnasium know as `loops`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from irgym.core.baseline import INSTALL_TORCH, Baseline, Pipeline, Tuning
from irgym.core.bench import Bench
from irgym.core.dataset import Dataset
from irgym.core.environment import BackendStatus, Environment, policies_in
from irgym.core.objective import Objective
from irgym.core.paper_recipes import LOOPTUNE
from irgym.core.recipe import from_scratch
from irgym.core.reward import ThroughputGain
from irgym.core.target import Target
from irgym.envs.loops.compiling import backends
from irgym.envs.loops.programs import datasets
from irgym.envs.loops.programs.contraction import GRAMMAR, parse_uri
from irgym.envs.loops.task import ANALYTICAL, LoopsTask
from irgym.measure.isolation.protocol import Limits
from irgym.measure.machine import timing_core
from irgym.measure.target import host_target, target_of


class LoopsEnvironment(Environment):
    """Loop nests of tensor contractions."""

    name = "loops"
    summary = "loop nests of tensor contractions (LoopTune); cost: measured time on one core"
    default_dataset = "mm64_256_16_range"
    default_reward = ThroughputGain(every=0)
    default_methods = (
        "base",
        "random",
        "greedy",
        "beam",
        "evolutionary",
        "guided:default",
        "policy:default",
        "numpy",
    )
    reference_baseline = "numpy"
    baselines = (
        Baseline("numpy", "numpy's matmul or einsum, threads as the back end's"),
        Baseline("torch", "torch's mm, bmm, conv1d to conv3d or einsum, threads likewise", INSTALL_TORCH),
        Baseline(
            "tvm", "TVM MetaSchedule, 64 trials, 1 thread", "pip install 'irgym[tvm]'", options=Tuning()
        ),
    )
    pipelines = (Pipeline(ANALYTICAL, "what an analytical model of the caches chooses without measurements"),)
    grammar = GRAMMAR
    recipes = MappingProxyType({"scratch": from_scratch(iterations=40), "looptune": LOOPTUNE})

    def beginnings(self, objective: Objective) -> Sequence[str]:
        """Return the pipelines that searches begin with: what the model chooses."""
        del objective
        return (ANALYTICAL,)

    def backends(self) -> list[BackendStatus]:
        """Return the state of the code generators, the preferred first."""
        return [generator.available() for generator in backends.BACKENDS]

    def task(
        self,
        uri: str,
        backend: str | None = None,
        target: Target | str | None = None,
        objective: str | None = None,
    ) -> LoopsTask:
        """Return the task of a `loops:` URI. The target determines the code generator, and vice versa.

        Raises:
            ProgramError: The URI is malformed.
            BackendError: The code generator or the code for the target does not run here, or the generator
                does not support the target or the program.
            IrgymError: There is no such objective.
        """
        contraction = parse_uri(uri)
        wanted = None if target is None else target_of(target)
        generator = backends.generator_of(contraction, backend, wanted)
        made_for = wanted or generator.target.on(host_target())
        return LoopsTask(contraction, generator, made_for).under(objective)

    def canonical(self, uri: str) -> str:
        """Return the canonical URI of a program."""
        return parse_uri(uri).uri

    def dataset_names(self) -> list[str]:
        """Return the names of the fixed data sets, and the form of generated ones."""
        return [*datasets.FIXED, datasets.GENERATED]

    def dataset(self, name: str) -> Dataset:
        """Return a data set, fixed or generated."""
        return datasets.dataset(name)

    def bench(self, farm: str | None = None, backend: str | None = None) -> Bench:
        """Return a bench with a child process on a pinned core for each thread of the back end, or a farm."""
        from irgym.measure.bench import MeasuringBench

        limits = Limits(core=timing_core(), threads=backends.threads_of(backend))
        runner = "irgym.envs.loops.runner"
        return MeasuringBench(limits=limits, farm=farm, candidates=(runner,), others=(runner,))

    def policies(self) -> Mapping[str, Path]:
        """Return the shipped policies."""
        return policies_in(Path(__file__).parent / "policies", DEFAULT_POLICY)


DEFAULT_POLICY = "contractions"
"""The shipped policy that `--policy default` means."""

LOOPS = LoopsEnvironment()
"""The environment."""
