"""The environment that `irgym` commands and Gymnasium know as `hlo`."""

import inspect
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

from irgym.base.errors import BackendError, ProgramError
from irgym.core.baseline import Pipeline
from irgym.core.bench import Bench
from irgym.core.catalogue import begins, mentions
from irgym.core.cost import Validation
from irgym.core.dataset import Dataset
from irgym.core.environment import BackendStatus, Environment, check_only_backend, policies_in
from irgym.core.paper_recipes import XLA
from irgym.core.reward import NegativeCost, RelativeImprovement, Shaped
from irgym.core.target import Target
from irgym.core.task import Task
from irgym.envs.hlo.compiling.modules import ProgramModules
from irgym.envs.hlo.compiling.native.build import STORE, TENSORFLOW, recipe
from irgym.envs.hlo.compiling.pipelines import ORDERS
from irgym.envs.hlo.compiling.pool import Pool
from irgym.envs.hlo.compiling.toolchain import INSTALL, installed
from irgym.envs.hlo.programs import datasets
from irgym.envs.hlo.programs.from_jax import program_of_function
from irgym.envs.hlo.programs.sources import Sources, content_of
from irgym.envs.hlo.programs.uris import GRAMMAR, SUFFIXES, parse_program
from irgym.envs.hlo.task import HloTask
from irgym.measure.isolation.protocol import GIB, Limits
from irgym.measure.machine import timing_core
from irgym.measure.target import target_of

BACKEND = "xla"
"""The only back end."""

HLO_TEXT = ("HloModule", "ENTRY ")
"""Words of HLO text, by which its files are told from other texts."""

DIALECTS = ("stablehlo.", "vhlo.", "mhlo.", "chlo.")
"""Prefixes of the operations by which MLIR that XLA reads is recognised."""

BYTECODE = b"ML\xefR"
"""First bytes of MLIR bytecode."""

INSTRUCTIONS = 100_000
"""Greatest number of instructions of a module; on larger ones, passes exceed their time limit."""

BENCH_LIMITS = Limits(timeout_s=600.0, memory_bytes=8 * GIB)
"""Limits of compiling and running a module on XLA:CPU."""


class HloEnvironment(Environment):
    """Orders of XLA's passes.

    Passes run in child processes that start on first use and end with this process.
    """

    name = "hlo"
    summary = "which XLA pass next, on HLO graphs (arXiv 2308.14364); cost: operations, FLOPs or run time"
    default_dataset = "families"
    default_reward = RelativeImprovement()
    rewards = MappingProxyType(
        {
            "negative-count": NegativeCost(),
            "negative-count-shaped": Shaped(NegativeCost()),
        }
    )
    recipes = MappingProxyType({"xla": XLA})
    objectives = HloTask.objectives
    pipelines = tuple(Pipeline(order.name, order.summary) for order in ORDERS.values())
    reference_pipeline = "core"
    default_methods = ("base", "core", "cpu", "random", "greedy", "beam", "evolutionary", "policy:default")
    validation_inputs = 1
    accepts = "a JAX function with its arguments"
    grammar = GRAMMAR

    def __init__(self) -> None:
        self._pool: Pool | None = None
        self._sources: Sources | None = None
        self._modules: dict[str, ProgramModules] = {}

    def backends(self) -> list[BackendStatus]:
        """Return the state of the engine, and of jax, which models and run times depend on."""
        return [self._engine_status(), _jax_status()]

    def _engine_status(self) -> BackendStatus:
        try:
            target = STORE.find(recipe().name)
        except BackendError as error:
            what, _, remedy = str(error).rpartition(": ")
            return BackendStatus(BACKEND, False, what, remedy)
        built = "built" if target else "not built yet: that takes half a minute, on first use"
        return BackendStatus(BACKEND, True, f"passes of TensorFlow {TENSORFLOW}, engine {built}")

    def task(
        self,
        uri: str,
        backend: str | None = None,
        target: Target | str | None = None,
        objective: str | None = None,
    ) -> HloTask:
        """Return the task of an `hlo:` URI, by default with operation count as its objective.

        Raises:
            ProgramError: The URI or the file is malformed.
            BackendError: The engine or jax is missing; there is no such back end or target; or the objective
                is run time and the target is not this processor.
            IrgymError: There is no such objective.
        """
        code_for = None if target is None else target_of(target, runs=False)
        check_only_backend("hlo", backend, BACKEND)
        program = parse_program(uri)
        pool = self.pool()
        if self._sources is None:
            self._sources = Sources()
            weakref.finalize(self, self._sources.close)
        file = self._sources.file(program)
        return self.task_of_file(program.uri, file, pool, code_for).under(objective)

    def canonical(self, uri: str) -> str:
        """Return the canonical URI of a program."""
        return parse_program(uri).uri

    def programs_of(self, uri: str) -> tuple[Sequence[str], Sequence[str]]:
        """Return the URI of a program, which XLA can read if it is a file.

        Raises:
            ProgramError: The URI or the file is malformed.
            BackendError: The engine is missing.
        """
        if parse_program(uri).path is not None:
            self.task(uri).initial()
        return [uri], ()

    def program_of(self, program: object, inputs: Sequence[Any]) -> str | None:
        """Return the URI of a file of HLO or StableHLO, or of a function (jitted or not) that JAX can lower.

        Raises:
            ProgramError: JAX cannot lower the function.
            BackendError: jax is missing.
        """
        if isinstance(program, Path):
            return f"hlo:{program}" if _is_hlo(program) else None
        # The result of jax.jit has no public type; `jax.stages.Wrapped` promises `lower`.
        lowered = hasattr(program, "lower") and not isinstance(program, type)
        if callable(program) and (lowered or inspect.isroutine(program) or isinstance(program, partial)):
            return program_of_function(cast(Callable[..., Any], program), inputs)
        return None

    def in_place_of(
        self, program: object, inputs: Sequence[Any], task: Task[Any], state: Any
    ) -> Callable[..., Any]:
        """Return the function of jax after the passes of a state; it takes the same arguments.

        Raises:
            ProgramError: jax cannot export the function, or the module has operations that StableHLO lacks.
        """
        from irgym.envs.hlo.compiling.calling import in_place_of

        assert isinstance(task, HloTask) and callable(program)
        proto: bytes = self.pool().call("proto", task.modules.file, state.path)
        return in_place_of(program, inputs, proto)

    def compare_called(
        self, program: object, inputs: Sequence[Any], function: Callable[..., Any], seed: int
    ) -> Validation:
        """Compare a function with the JAX function that it replaces; see `Environment.compare_called`."""
        from irgym.envs.hlo.compiling.calling import compare

        assert callable(program)
        return compare(program, inputs, function, seed)

    def task_of_file(
        self, uri: str, file: Path, pool: Pool | None = None, code_for: Target | None = None
    ) -> HloTask:
        """Return the task of a file that holds an HloModuleProto."""
        if str(file) not in self._modules:
            self._modules[str(file)] = ProgramModules(uri, file, content_of(file), pool or self.pool())
        modules = self._modules[str(file)]
        if modules.root.total > INSTRUCTIONS:  # raises if XLA cannot read the module
            raise ProgramError(
                f"{uri} has {modules.root.total:,} instructions, and at most {INSTRUCTIONS:,} are handled: "
                "split the module"
            )
        return HloTask(modules, code_for=code_for)

    def pool(self) -> Pool:
        """Return the pool of processes that run passes, started on first use.

        Raises:
            BackendError: The engine cannot be built here.
        """
        if self._pool is None:
            self._pool = Pool()
            weakref.finalize(self, self._pool.close)
        return self._pool

    def dataset_names(self) -> list[str]:
        """Return the names of the data sets."""
        return list(datasets.DATASETS)

    def dataset(self, name: str) -> Dataset:
        """Return a data set."""
        return datasets.dataset(name)

    def family(self, uri: str) -> str:
        """Return the model family of a program."""
        return parse_program(uri).family

    def bench(self, farm: str | None = None, backend: str | None = None) -> Bench:
        """Return the bench that runs modules on XLA:CPU: a child process on one pinned core, or a farm."""
        from irgym.measure.bench import MeasuringBench

        del backend
        limits, runner = replace(BENCH_LIMITS, core=timing_core()), "irgym.envs.hlo.runner"
        return MeasuringBench(limits=limits, farm=farm, others=(runner,))

    def policies(self) -> Mapping[str, Path]:
        """Return the shipped policies."""
        return policies_in(Path(__file__).parent / "policies", DEFAULT_POLICY)


DEFAULT_POLICY = "families"
"""The shipped policy that `--policy default` means."""


def _is_hlo(path: Path) -> bool:
    """Say whether a file holds HLO or StableHLO; other texts have these suffixes too."""
    suffix = path.suffix.lower()
    if suffix == ".bc":  # LLVM bitcode has this suffix too
        return begins(path, BYTECODE)
    words = {".mlir": DIALECTS, ".txt": HLO_TEXT}.get(suffix)
    return suffix in SUFFIXES and (words is None or mentions(path, *words))


def _jax_status() -> BackendStatus:
    found = installed("jax"), installed("jaxlib")
    detail = f"jax {found[0]}, jaxlib {found[1]}" if all(found) else "jax is not installed"
    return BackendStatus(
        "jax", all(found), f"{detail} (models, run time, validation)", "" if all(found) else INSTALL
    )


HLO = HloEnvironment()
"""The environment."""
