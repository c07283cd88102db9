"""The environment that `irgym` commands and Gymnasium know as `llvm`."""

import weakref
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from irgym.base.errors import BackendError
from irgym.core.baseline import Baseline, Pipeline
from irgym.core.bench import Bench
from irgym.core.dataset import Dataset
from irgym.core.environment import BackendStatus, Environment, check_only_backend, policies_in
from irgym.core.objective import Objective
from irgym.core.reward import RelativeImprovement
from irgym.core.target import Target
from irgym.envs.llvm.compiling.installed import BACKENDS, INSTALL, PREFERRED, llvm_named
from irgym.envs.llvm.compiling.modules import ProgramModules
from irgym.envs.llvm.compiling.pool import Pool
from irgym.envs.llvm.programs import datasets
from irgym.envs.llvm.programs.preparing import SPEED
from irgym.envs.llvm.programs.sources import Sources
from irgym.envs.llvm.programs.uris import GRAMMAR, family_of, parse_uri, run_of, runs_always
from irgym.envs.llvm.task import LIST, PIPELINES, RUNNER, SPEED_PIPELINE, LlvmTask
from irgym.envs.llvm.whole.linking import check_linked
from irgym.llvmir.programs.files import is_program
from irgym.measure.isolation.protocol import GIB, Limits
from irgym.measure.machine import timing_core
from irgym.measure.store import content_digest
from irgym.measure.target import target_of

BENCH_LIMITS = Limits(timeout_s=120.0, memory_bytes=4 * GIB)
"""Limits of measuring and checking a module."""

DEFAULT_POLICY = "packages"
"""The shipped policy that `--policy default` means."""


class LlvmEnvironment(Environment):
    """Orders of LLVM's passes.

    Passes run in child processes that start on first use and end with this process.
    """

    name = "llvm"
    summary = (
        "which LLVM pass next, on modules of LLVM's IR (CompilerGym); cost: instructions, code size or time"
    )
    default_dataset = datasets.DEFAULT
    default_reward = RelativeImprovement()
    objectives = LlvmTask.objectives
    pipelines = tuple(Pipeline(name, summary) for name, summary in PIPELINES.items())
    baselines = (Baseline(SPEED_PIPELINE, "LLVM's -O3, timed in turn with results under the objective time"),)
    reference_baseline = SPEED_PIPELINE
    reference_pipeline = "oz"
    first_pipelines = ("oz", LIST)
    default_methods = (
        "base",
        "o3",
        "oz",
        "list",
        "random",
        "greedy",
        "beam",
        "evolutionary",
        "policy:default",
        "guided:default",
    )
    validation_inputs = 2
    grammar = GRAMMAR
    yields_files = True

    def __init__(self) -> None:
        self._pools: dict[str, Pool] = {}
        self._sources: dict[str, Sources] = {}
        self._modules: dict[tuple[str, str, str], ProgramModules] = {}

    def backends(self) -> list[BackendStatus]:
        """Return which LLVMs are installed."""
        return [_status(name) for name in BACKENDS]

    def task(
        self,
        uri: str,
        backend: str | None = None,
        target: Target | str | None = None,
        objective: str | None = None,
    ) -> LlvmTask:
        """Return the task of an `llvm:` URI.

        C is made small for x86-64, and fast for the target where the objective is time. Other costs than time
        have no target.

        Raises:
            ProgramError: The URI or the file is malformed, or the program is to be timed and does not link.
            BackendError: LLVM or ziglang is missing, there is no such back end, or the target does not run
                here.
            IrgymError: There is no such objective.
        """
        if backend is not None and backend.startswith(":"):
            check_only_backend(self.name, backend, PREFERRED)
        name = backend or PREFERRED
        program = parse_uri(uri)
        timed = self.objective(objective).timed
        code_for = target_of(target) if timed else None
        aim = (SPEED, code_for.name) if code_for is not None else ()
        file = self._opened(name).module(program, *aim)
        known = self._modules.get((name, program.uri, str(file)))
        if known is None:
            known = ProgramModules(program.uri, file, content_digest(file.read_bytes()), self._pool(name))
            self._modules[name, program.uri, str(file)] = known
        task = LlvmTask(known, run_of(program), code_for, runs_always(program)).under(objective)
        if timed:
            check_linked(known)
        return task

    def reference(self, objective: Objective) -> str | None:
        """Return `oz`; None for run times, which are timed in turn with those after -O3."""
        return None if objective.timed else super().reference(objective)

    def beginnings(self, objective: Objective) -> Sequence[str]:
        """Return the pipelines that searches begin with: -O3 for run times."""
        return (SPEED_PIPELINE,) if objective.timed else super().beginnings(objective)

    def canonical(self, uri: str) -> str:
        """Return the canonical URI of a program."""
        return parse_uri(uri).uri

    def program_of(self, program: object, inputs: Sequence[Any]) -> str | None:
        """Return the URI of a file of C or of LLVM's IR; None for other objects."""
        del inputs
        return f"llvm:{program}" if isinstance(program, Path) and is_program(program) else None

    def programs_of(self, uri: str) -> tuple[Sequence[str], Sequence[str]]:
        """Return the URI of a program, whose file can be compiled and read.

        Raises:
            ProgramError: The URI or the file is malformed.
            BackendError: LLVM or ziglang is missing.
        """
        program = parse_uri(uri)
        if program.path is not None:
            self._opened(PREFERRED).module(program)
        return [uri], ()

    def _opened(self, backend: str) -> Sources:
        if backend not in self._sources:
            self._sources[backend] = sources = Sources(backend)
            weakref.finalize(self, sources.close)
        return self._sources[backend]

    def _pool(self, backend: str) -> Pool:
        if backend not in self._pools:
            self._pools[backend] = pool = Pool(backend)
            weakref.finalize(self, pool.close)
        return self._pools[backend]

    def dataset_names(self) -> list[str]:
        """Return the names of the data sets."""
        return list(datasets.DATASETS)

    def dataset(self, name: str) -> Dataset:
        """Return a data set."""
        return datasets.dataset(name)

    def family(self, uri: str) -> str:
        """Return the package or the data set of a program."""
        return family_of(parse_uri(uri))

    def policies(self) -> Mapping[str, Path]:
        """Return the trained policies that ship."""
        return policies_in(Path(__file__).parent / "policies", DEFAULT_POLICY)

    def bench(self, farm: str | None = None, backend: str | None = None) -> Bench:
        """Start the processes that measure and check modules: a child, or a farm."""
        from irgym.measure.bench import MeasuringBench

        del backend
        limits = replace(BENCH_LIMITS, core=timing_core())
        return MeasuringBench(limits=limits, farm=farm, others=(RUNNER,))


def _status(name: str) -> BackendStatus:
    try:
        return BackendStatus(name, True, llvm_named(name).origin)
    except BackendError as error:
        what, _, remedy = str(error).rpartition(": run ")
        return BackendStatus(name, False, what, remedy or INSTALL)


LLVM = LlvmEnvironment()
"""The environment."""
