"""The environment `linalg`, and its variants `linalg-swaps`, `linalg-scores` and `linalg-flat`."""

import sys
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

from irgym.base.errors import BackendError, ProgramError
from irgym.core.actions import ActionSpace
from irgym.core.baseline import INSTALL_TORCH, Baseline
from irgym.core.bench import Bench
from irgym.core.catalogue import mentions
from irgym.core.cost import Validation
from irgym.core.dataset import Dataset
from irgym.core.environment import BackendStatus, Environment, policies_in
from irgym.core.paper_recipes import MLIR_RL
from irgym.core.recipe import from_scratch
from irgym.core.reward import LogSpeedup
from irgym.core.target import Target
from irgym.core.task import Task
from irgym.core.uri import renamed
from irgym.envs.linalg import actions
from irgym.envs.linalg.compiling.calling import Compiled
from irgym.envs.linalg.compiling.openmp import MLIR, OPENMP, threads_of, toolchain_with
from irgym.envs.linalg.compiling.toolchain import INSTALL
from irgym.envs.linalg.importing.from_torch import from_torch
from irgym.envs.linalg.programs import datasets
from irgym.envs.linalg.programs.reader import Reader
from irgym.envs.linalg.programs.sources import Sources
from irgym.envs.linalg.programs.uris import GRAMMAR, SUFFIX, File, parse_uri
from irgym.envs.linalg.programs.weights import weights_of
from irgym.envs.linalg.scheduling.operations import Program
from irgym.envs.linalg.task import LinalgTask
from irgym.measure.isolation.protocol import GIB, Limits
from irgym.measure.machine import core_count, threads_text, timing_core
from irgym.measure.target import target_of

SCHEME = "linalg"
"""Scheme of the URIs of programs, in all variants."""

LIMITS = Limits(timeout_s=60.0, memory_bytes=8 * GIB)
"""Limits of compiling and running a candidate; on some candidates MLIR does not terminate."""


@dataclass(frozen=True)
class Variant:
    """The programs of `linalg` with another encoding of its actions.

    Files and modules belong to `linalg`, and so do the shipped policies.

    Attributes:
        name: The name, and the scheme of URIs.
        encoding: The encoding, for the summary.
        space: The actions.
    """

    name: str
    encoding: str
    space: ActionSpace


class LinalgEnvironment(Environment):
    """Schedules of linalg operations on tensors.

    Programs are read in a child process, which ends with this process.

    Args:
        variant: The variant; by default interchanges are level pointers.
    """

    name = SCHEME
    summary = "tile, fuse, interchange, vectorise linalg operations (MLIR RL, arXiv 2409.11068); cost: time"
    default_dataset = datasets.DEFAULT
    default_reward = LogSpeedup()
    objectives = LinalgTask.objectives
    reference_baseline = "torch"
    baselines = (
        Baseline("numpy", "numpy's function of an operator, threads as the back end's"),
        Baseline("torch", "torch's operator or module, eager, threads as the back end's", INSTALL_TORCH),
        Baseline("torch-compile", "the same through torch.compile", INSTALL_TORCH),
    )
    recipes = MappingProxyType(
        {
            "scratch": from_scratch(
                iterations=30,
                screen=0.08,
                encoder="mlp",
                actions="autoregressive",
                normalise_observations=True,
            ),
            "mlir-rl": MLIR_RL,
        }
    )
    default_methods = (
        "base",
        "random",
        "greedy",
        "evolutionary",
        "policy:default",
        "guided:default",
        "numpy",
        "torch",
        "torch-compile",
    )
    validation_inputs = 2
    accepts = "a torch module with its inputs"
    grammar = GRAMMAR
    space = actions.SPACE

    def __init__(self, variant: Variant | None = None) -> None:
        self._variant = variant
        if variant is not None:
            self.name, self.space = variant.name, variant.space
            self.summary = f"linalg with {variant.encoding}, as in MLIR RL; cost: time"
            self.default_methods = tuple(
                method for method in self.default_methods if not method.endswith(":default")
            )
            self.accepts = ""
        self._sources: Sources | None = None
        self._reader = Reader(LIMITS)  # its process starts when something is read
        weakref.finalize(self, self._reader.close)

    def backends(self) -> list[BackendStatus]:
        """Return the status of torch-mlir's MLIR and of the OpenMP runtime."""
        cores = core_count()
        many = f"parallel loops run on {threads_text(cores)}, on N with {OPENMP}:N"
        return [
            _status(MLIR, None, "parallel loops run on one thread"),
            _status(OPENMP, cores, many),
        ]

    def task(
        self,
        uri: str,
        backend: str | None = None,
        target: Target | str | None = None,
        objective: str | None = None,
    ) -> LinalgTask:
        """Return the task of a `linalg:` URI, or of a URI with the scheme of this variant.

        Raises:
            ProgramError: The URI or the file is malformed.
            BackendError: torch-mlir or OpenMP is missing, there is no such back end or target, or this
                processor does not run the target's code.
            IrgymError: There is no such objective.
        """
        threads = threads_of(backend)
        made_for = target_of(target)
        source = parse_uri(renamed(uri, self.name, SCHEME))
        toolchain_with(threads)
        text, program = self._reader.described(self._opened().text(source), source.uri)

        @cache
        def divide() -> list[LinalgTask]:
            return _divided(self._reader, text, program, source.uri, partial(LinalgTask, **made))

        made: dict[str, Any] = {"target": made_for, "threads": threads, "space": self.space}
        return LinalgTask(source.uri, text, program, divide=divide, **made).under(objective)

    def canonical(self, uri: str) -> str:
        """Return the canonical URI of a program, which is one of `linalg` for `linalg-swaps` too."""
        return parse_uri(renamed(uri, self.name, SCHEME)).uri

    def programs_of(self, uri: str) -> tuple[Sequence[str], Sequence[str]]:
        """Return the functions of a file with several that can be imported, if the URI names none.

        Raises:
            ProgramError: The URI or the file is malformed, or no function can be imported.
            BackendError: torch-mlir is missing.
        """
        source = parse_uri(renamed(uri, self.name, SCHEME))
        file = source.origin
        names = self._opened().functions(file) if isinstance(file, File) and not file.function else []
        if len(names) < 2:
            return [uri], ()
        programs: list[str] = []
        left_out: list[str] = []
        for name in names:
            program = f"{source.uri}#{name}"
            try:
                self._opened().file(parse_uri(program))
            except ProgramError as error:
                left_out.append(str(error))
            else:
                programs.append(program)
        if not programs:
            raise ProgramError(f"{source.uri} has no function that can be imported, such as: {left_out[0]}")
        return programs, left_out

    def program_of(self, program: object, inputs: Sequence[Any]) -> str | None:
        """Return the URI of a file of linalg operations, or of a torch module, which is imported.

        A variant returns None: its programs are given by URI.

        Raises:
            ProgramError: The module comes without inputs, or cannot be imported.
            BackendError: torch-mlir is missing.
        """
        if self._variant is not None:
            return None
        if isinstance(program, Path):
            return (
                f"linalg:{program}"
                if program.suffix.lower() == SUFFIX and mentions(program, "linalg.")
                else None
            )
        torch = sys.modules.get("torch")
        if torch is None or not isinstance(program, torch.nn.Module):
            return None
        if not inputs:
            raise ProgramError(
                f"{type(program).__name__} comes without inputs: give the inputs that it is called with"
            )
        return from_torch(program, *inputs)

    def in_place_of(
        self, program: object, inputs: Sequence[Any], task: Task[Any], state: Any
    ) -> Callable[..., Any]:
        """Return a callable that computes a module's program in this process, with the weights it had.

        Raises:
            BackendError: There is no linker.
        """
        from irgym.measure.callables.torch_modules import InPlace

        assert isinstance(task, LinalgTask)
        return InPlace(cast(Any, program), inputs, Compiled(task, state, weights_of(task.uri)))

    def compare_called(
        self, program: object, inputs: Sequence[Any], function: Callable[..., Any], seed: int
    ) -> Validation:
        """Compare a function with the module that it replaces; see `Environment.compare_called`."""
        from irgym.measure.callables.torch_comparison import compare

        return compare(cast(Any, program), inputs, function, seed)

    def dataset_names(self) -> list[str]:
        """Return the names of the data sets."""
        return list(datasets.DATASETS)

    def dataset(self, name: str) -> Dataset:
        """Return a data set."""
        return datasets.dataset(name)

    def family(self, uri: str) -> str:
        """Return the operator or network of a program."""
        return parse_uri(renamed(uri, self.name, SCHEME)).family

    def bench(self, farm: str | None = None, backend: str | None = None) -> Bench:
        """Start a child process pinned to one core for each thread of the back end, or use a farm's workers.

        Raises:
            BackendError: There is no such back end.
        """
        from irgym.measure.bench import MeasuringBench

        limits = replace(LIMITS, core=timing_core(), threads=threads_of(backend) or 1)
        runner = "irgym.envs.linalg.runner"
        return MeasuringBench(limits=limits, farm=farm, candidates=(runner,), others=(runner, "torch"))

    def policies(self) -> Mapping[str, Path]:
        """Return the shipped policies, which were trained on the actions of `linalg`."""
        return (
            {}
            if self._variant is not None
            else policies_in(Path(__file__).parent / "policies", DEFAULT_POLICY, POLICIES_OF_TARGETS)
        )

    def _opened(self) -> Sources:
        if self._sources is None:
            self._sources = Sources()
            weakref.finalize(self, self._sources.close)
        return self._sources


def _divided(
    reader: Reader, text: str, program: Program, uri: str, make: Callable[..., LinalgTask]
) -> list[LinalgTask]:
    """Return the task of each operation with a turn; equal operations share one task."""
    parts = reader.parts(text, program.turns, uri)
    places = dict(zip(reversed(parts), reversed(program.turns), strict=True))
    tasks = {part: make(f"{uri}#{place}", *reader.described(part, uri)) for part, place in places.items()}
    return [tasks[part] for part in parts]


def _status(name: str, threads: int | None, parallel: str) -> BackendStatus:
    """Return the status of a back end, and how parallel loops run on it."""
    try:
        return BackendStatus(name, True, f"{toolchain_with(threads)}; {parallel}")
    except BackendError as error:
        return BackendStatus(name, False, str(error).partition(":")[0], INSTALL)


DEFAULT_POLICY = "operators"
"""The shipped policy that `--policy default` means."""

POLICIES_OF_TARGETS = {"x86-64-v3": "operators-x86-64-v3"}
"""The shipped policies that `--policy default` means on other targets."""

LINALG = LinalgEnvironment()
"""The environment with level pointers."""

LINALG_SWAPS = LinalgEnvironment(
    Variant("linalg-swaps", "an interchange as one of enumerated swaps", actions.SWAP_SPACE)
)
"""The environment with enumerated swaps."""

LINALG_SCORES = LinalgEnvironment(
    Variant("linalg-scores", "an interchange as scores of all loops", actions.SCORE_SPACE)
)
"""The environment with a score for each loop."""

LINALG_FLAT = LinalgEnvironment(
    Variant("linalg-flat", "actions for one loop each, which are listed", actions.FLAT_SPACE)
)
"""The environment whose actions are few enough for flat policies, DQN and Ape-X."""
