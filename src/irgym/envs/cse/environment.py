"""The environment `cse`, as `irgym` commands and Gymnasium use it."""

import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from irgym.base.errors import BackendError, ProgramError
from irgym.core.baseline import Pipeline
from irgym.core.bench import Bench
from irgym.core.dataset import Dataset
from irgym.core.environment import BackendStatus, Environment, check_only_backend, policies_in
from irgym.core.paper_recipes import JIT_CSE
from irgym.core.reward import RelativeImprovement
from irgym.core.target import Target
from irgym.core.task import Task
from irgym.envs.cse.compiling.export import MODULE_FORMS, export_module
from irgym.envs.cse.compiling.toolchain import INSTALL, llvm_version, z3_version
from irgym.envs.cse.programs import datasets
from irgym.envs.cse.programs.sources import Sources, content_of
from irgym.envs.cse.programs.targets import TARGETS, target_named
from irgym.envs.cse.programs.uris import GRAMMAR, parse_uri
from irgym.envs.cse.task import CHECKS, PIPELINES, CseTask
from irgym.llvmir.programs.clang import clang_version
from irgym.llvmir.programs.files import file_of, function_of, is_program, member_of
from irgym.measure.isolation.protocol import GIB, Limits

BACKEND = "llvm"
"""Name of the back end."""

DEFAULT_POLICY = "packages"
"""The shipped policy behind `--policy default`."""

POLICIES_OF_TARGETS = {"i686": "packages-i686"}
"""The shipped policies behind `--policy default` on other targets."""

LIMITS = Limits(timeout_s=120.0, memory_bytes=4 * GIB)
"""Limits of scoring a choice."""


class CseEnvironment(Environment):
    """The choice of common subexpressions to share in a function of C or LLVM's IR.

    Programs are read in a child process that starts on first use and ends with this process.
    """

    name = "cse"
    summary = "which common subexpressions to share (the .NET JIT's CSE gym); cost: a static score of code"
    default_dataset = datasets.DEFAULT
    default_reward = RelativeImprovement()
    recipes = MappingProxyType({"jit-cse": JIT_CSE})
    objectives = CseTask.objectives
    reference_pipeline = "all"
    pipelines = tuple(Pipeline(name, summary) for name, summary in PIPELINES.items())
    default_methods = (
        "base",
        "all",
        "cost-test",
        "estimated",
        "random",
        "greedy",
        "beam",
        "evolutionary",
        "policy:default",
        "guided:default",
    )
    validation_inputs = 4
    part_forms = MODULE_FORMS
    grammar = GRAMMAR

    def __init__(self) -> None:
        self._sources: Sources | None = None

    def backends(self) -> list[BackendStatus]:
        """Return whether LLVM, clang and z3 are installed."""
        return [
            _status(BACKEND, llvm_version, f"scores for {', '.join(TARGETS)}"),
            _status("clang", clang_version, "reads C"),
            _status("z3", z3_version, "proves what is shared"),
        ]

    def task(
        self,
        uri: str,
        backend: str | None = None,
        target: Target | str | None = None,
        objective: str | None = None,
    ) -> CseTask:
        """Return the task of a `cse:` URI.

        Raises:
            ProgramError: The URI or the file is malformed, or the function is not there.
            BackendError: llvmlite or ziglang is missing, or there is no such back end or target.
            IrgymError: There is no such objective.
        """
        check_only_backend("cse", backend, BACKEND)
        chosen_target = target_named(target)
        program = parse_uri(uri)
        module = self._opened().module(file_of(program), chosen_target.name)
        function = self._opened().function(program, module)
        return CseTask(program.uri, module, content_of(module), function, chosen_target).under(objective)

    def canonical(self, uri: str) -> str:
        """Return the canonical URI of a program."""
        return parse_uri(uri).uri

    def parts(self, uri: str, target: Target | str | None = None) -> Sequence[str]:
        """Return the functions with candidates of a file, if the URI names no function.

        Raises:
            ProgramError: The URI or the file is malformed, or has no such function.
            BackendError: llvmlite or ziglang is missing, or there is no such target.
        """
        program = parse_uri(uri)
        if function_of(program):
            return ()
        module = self._opened().module(file_of(program), target_named(target).name)
        names = self._opened().with_candidates(module)
        if not names:
            raise ProgramError(
                f"{program.uri} has no function in which two blocks compute the same: choose another"
            )
        return [f"{program.uri}#{name}" for name in names]

    def export_parts(self, parts: Sequence[tuple[Task[Any], Any]], path: Path) -> list[Path]:
        """Write the module with all functions under their choices (.ll)."""
        return export_module([task.choice(state) for task, state in parts if isinstance(task, CseTask)], path)

    def policies(self) -> Mapping[str, Path]:
        """Return the trained policies that ship."""
        return policies_in(Path(__file__).parent / "policies", DEFAULT_POLICY, POLICIES_OF_TARGETS)

    def _opened(self) -> Sources:
        if self._sources is None:
            self._sources = Sources()
            weakref.finalize(self, self._sources.close)
        return self._sources

    def program_of(self, program: object, inputs: Sequence[Any]) -> str | None:
        """Return the URI of a file of C or of LLVM's IR; None for other objects."""
        del inputs
        return f"cse:{program}" if isinstance(program, Path) and is_program(program) else None

    def dataset_names(self) -> list[str]:
        """Return the names of the data sets."""
        return list(datasets.DATASETS)

    def dataset(self, name: str) -> Dataset:
        """Return a data set by name."""
        return datasets.dataset(name)

    def family(self, uri: str) -> str:
        """Return the file or the package that contains a function."""
        return member_of(parse_uri(uri)).partition("/")[0]

    def bench(self, farm: str | None = None, backend: str | None = None) -> Bench:
        """Start the measuring processes: a child, or a farm."""
        from irgym.measure.bench import MeasuringBench

        del backend
        return MeasuringBench(limits=LIMITS, farm=farm, others=(CHECKS,))


def _status(name: str, version: Callable[[], str], use: str) -> BackendStatus:
    try:
        return BackendStatus(name, True, f"{version()}; {use}")
    except BackendError as error:
        return BackendStatus(name, False, str(error).partition(":")[0], INSTALL)


CSE = CseEnvironment()
"""The environment."""
