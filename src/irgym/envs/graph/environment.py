"""The environment `graph`, and its variant `graph-taso`."""

import re
import sys
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias, cast

from irgym.base.errors import BackendError, ProgramError
from irgym.core.baseline import Baseline
from irgym.core.bench import Bench
from irgym.core.cost import Call, Validation
from irgym.core.dataset import Dataset
from irgym.core.environment import DEFAULT, BackendStatus, Environment, policies_in
from irgym.core.paper_recipes import X_RLFLOW
from irgym.core.profiles import Profile
from irgym.core.queries import SIZES
from irgym.core.recipe import Recipe
from irgym.core.reward import LogSpeedup, PeriodicImprovement
from irgym.core.target import Target
from irgym.core.task import Task
from irgym.core.uri import ProgramUri, renamed
from irgym.envs.graph.ir.graph import Graph
from irgym.envs.graph.programs import datasets
from irgym.envs.graph.programs.from_torch import from_torch
from irgym.envs.graph.programs.sources import INSTALL, INSTALL_MODELS, INSTALL_PEERS, Sources
from irgym.envs.graph.programs.uris import GRAMMAR, SUFFIX, parse_program, refuse_other_forms
from irgym.envs.graph.running.session_options import LEVELS
from irgym.envs.graph.running.toolchain import toolchain
from irgym.envs.graph.task import ALL_VIEWS, MCTS_GEB, MODEL, SATURATIONS, TENSAT, GraphTask
from irgym.measure.isolation.protocol import GIB, Limits
from irgym.measure.machine import check_threads, threads_text, timing_core
from irgym.measure.target import target_of

SCHEME = "graph"
"""The scheme of URIs."""

BACKEND = "ort"
"""The back end: ONNX Runtime on one thread, `ort:N` on N."""

DEFAULT_POLICY = "models"
"""The shipped policy that `--policy default` means."""

RUNNING = Limits(timeout_s=600.0, memory_bytes=20 * GIB)
"""Limits for running a candidate. Memory suffices for three copies of the largest weights: two sessions timed
in turn have a copy each, and weights may be computed."""


_Read: TypeAlias = tuple[str, Graph, str, tuple[Profile, ...]]
"""A model that was read: its path, its graph, the digest of its samples, and its profiles."""

BEST_LEVEL = "at the fastest of ONNX Runtime's levels"
"""How the results of other optimisers are run."""


@dataclass(frozen=True)
class Variant:
    """The programs and actions of `graph`, with only some of the rules; its schedules suit `graph` too.

    Attributes:
        name: The name, and the scheme of URIs.
        summary: One line.
        source: The source of the rules, as they name it.
        recipes: Set-ups of trainings, by name.
    """

    name: str
    summary: str
    source: str
    recipes: Mapping[str, Recipe] = field(default_factory=dict[str, Recipe])


class GraphEnvironment(Environment):
    """Rewriting of ONNX models.

    Models are exported and read in a child process that starts on first use and ends with this process.

    Args:
        variant: The variant; by default all rules.
    """

    name = "graph"
    summary = "rewrite ONNX models for ONNX Runtime (X-RLflow, MLSys 2023); cost: time"
    default_dataset = datasets.DEFAULT
    default_reward = LogSpeedup()
    outline = (GraphTask.space, ALL_VIEWS)
    rewards = MappingProxyType(
        {
            "x-rlflow": PeriodicImprovement(),
        }
    )
    objectives = GraphTask.objectives
    reference_baseline = "ort-all"
    baselines = (
        *(
            Baseline(f"ort-{level}", f"ONNX Runtime's own optimiser ({level.upper()})", INSTALL)
            for level in LEVELS
        ),
        Baseline("onnxslim", f"onnxslim, {BEST_LEVEL}", INSTALL_PEERS),
        Baseline("onnxsim", f"onnxsim, {BEST_LEVEL}", INSTALL_PEERS),
        Baseline("ort-transformers", f"onnxruntime.transformers, {BEST_LEVEL}", INSTALL_MODELS),
        Baseline("torch", "the module that the model was exported from", INSTALL_MODELS),
        Baseline("torch-compile", "the same under torch.compile", INSTALL_MODELS),
        Baseline(
            TENSAT,
            "equality saturation by egglog with these rules, and integer programming, as in Tensat",
            INSTALL_PEERS,
            any_objective=True,
            options=SATURATIONS[TENSAT],
        ),
        Baseline(
            MCTS_GEB,
            "tensat whose next rule a Monte-Carlo tree search chooses, as in MCTS-GEB",
            INSTALL_PEERS,
            any_objective=True,
            options=SATURATIONS[MCTS_GEB],
        ),
    )
    default_methods = (
        "base",
        "random",
        "greedy",
        "beam",
        "evolutionary",
        "policy:default",
        "guided:default",
        "ort-all",
    )
    validation_inputs = 3
    accepts = "a torch module with its inputs"
    grammar = GRAMMAR

    def __init__(self, variant: Variant | None = None) -> None:
        self._sources: Sources | None = None
        self._models: dict[str, _Read] = {}
        self._told: set[str] = set()
        self._variant = variant
        if variant is not None:
            self.name, self.summary, self.accepts = variant.name, variant.summary, ""
            self.recipes = variant.recipes
            self.default_methods = tuple(
                method for method in self.default_methods if not method.endswith(f":{DEFAULT}")
            )

    def backends(self) -> list[BackendStatus]:
        """Return whether ONNX Runtime is installed."""
        try:
            detail = f"{toolchain()}; {threads_text(1)}, on N with {BACKEND}:N"
        except BackendError as error:
            return [BackendStatus(BACKEND, False, str(error).partition(":")[0], INSTALL)]
        return [BackendStatus(BACKEND, True, detail)]

    def task(
        self,
        uri: str,
        backend: str | None = None,
        target: Target | str | None = None,
        objective: str | None = None,
    ) -> GraphTask:
        """Return the task of a `graph:` URI, or of a URI with the scheme of this variant.

        Raises:
            ProgramError: The URI or the file is malformed.
            BackendError: A package is missing, there is no such back end, or the target is not this machine,
                the only one that ONNX Runtime has kernels for.
            IrgymError: There is no such objective.
        """
        threads = threads_of(backend)
        versions = toolchain()
        program = self._parsed(uri)
        made_for = target_of(target)
        if self._sources is None:
            self._sources = Sources()
            weakref.finalize(self, self._sources.close)
        file = str(self._sources.file(program))
        path, graph, inputs, profiles = self._read(self._sources, file, program)
        if profiles != program.profiles:
            program = self._at_sizes(program, profiles)
        elif graph.profile and graph.profile != program.bindings and program.inputs is None:
            program = self._at_sizes(program, (Profile(graph.profile),))
        if profiles and objective == MODEL.name:
            raise ProgramError(f"the objective {objective} is of one size: name one, or leave it out")
        task = GraphTask(program.uri, path, graph, made_for, threads, versions, inputs, profiles)
        return (task if self._variant is None else task.restricted(self._variant.source)).under(objective)

    def _parsed(self, uri: str) -> ProgramUri:
        return parse_program(renamed(uri, self.name, SCHEME))

    def _read(self, sources: Sources, file: str, program: ProgramUri) -> _Read:
        if file not in self._models:
            arguments = (file, program.uri, sources.inputs(program))
            call = Call("irgym.envs.graph.running.keeping:kept", arguments)
            uri = program.uri
            path, graph, fixed, inputs, profiles = sources.opened(call, uri, Path(file))
            if fixed:
                print(
                    f"irgym: callers of {uri} may override the initializers {', '.join(fixed)}: here, and in "
                    "exported models, they are constants; turn those that must stay open into plain inputs",
                    file=sys.stderr,
                )
            self._models[file] = path, graph, inputs, profiles
        return self._models[file]

    def _at_sizes(self, program: ProgramUri, profiles: Sequence[Profile]) -> ProgramUri:
        """Return the program at sizes that its user did not name, and say so once on stderr."""
        sizes, *others = (profile.sizes for profile in profiles)
        query = "&".join(f"{name}={size}" for name, size in sizes)
        if others:
            query = "&".join(f"{SIZES}={profile.text}" for profile in profiles)
        uri = f"{SCHEME}:{program.path}?{query}"
        if uri not in self._told:
            self._told.add(uri)
            print(
                f"irgym: {program.path} leaves sizes open: it is measured at {query.replace('&', ', ')}; "
                f"name others as in {uri!r}",
                file=sys.stderr,
            )
        held = "".join(f"&range.{name}={low}:{high}" for name, (low, high) in program.ranges)
        several = tuple(profiles) if others else ()
        return replace(program, uri=uri + held, bindings=sizes, profiles=several)

    def canonical(self, uri: str) -> str:
        """Return the canonical URI of a program, which is one of `graph` for variants too."""
        return self._parsed(uri).uri

    def program_of(self, program: object, inputs: Sequence[Any]) -> str | None:
        """Return the URI of an ONNX file, or of a torch module, which is exported; None in a variant.

        Raises:
            ProgramError: The module comes without inputs or cannot be exported, or the file is a packed or
                converted ONNX file.
            BackendError: A package for the export is not installed.
        """
        if self._variant is not None:
            return None
        if isinstance(program, Path):
            refuse_other_forms(program)
            return f"{SCHEME}:{program}" if program.suffix.lower() == SUFFIX else None
        torch = sys.modules.get("torch")
        if torch is None or not isinstance(program, torch.nn.Module):
            return None
        if not inputs:
            raise ProgramError(
                f"{type(program).__name__} comes without inputs: give those that it is called with"
            )
        return from_torch(program, *inputs)

    def in_place_of(
        self, program: object, inputs: Sequence[Any], task: Task[Any], state: Any
    ) -> Callable[..., Any]:
        """Return a callable that runs a module's model, with the weights of its export, in this process.

        Raises:
            IrgymError: ONNX Runtime refuses the model.
        """
        from irgym.envs.graph.programs.standing import in_place_of
        from irgym.envs.graph.running.calls import run_of_state
        from irgym.measure.callables.torch_calls import name_of

        module = cast(Any, program)
        return in_place_of(module, inputs, run_of_state(task, state, name_of(module)))

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
        """Return the architecture of a program, or the name of its file."""
        program = self._parsed(uri)
        return program.family or (program.path.stem if program.path else "")

    def bench(self, farm: str | None = None, backend: str | None = None) -> Bench:
        """Start a child process on as many pinned cores as the back end has threads, or use a farm.

        Raises:
            BackendError: There is no such back end.
        """
        from irgym.measure.bench import MeasuringBench

        threads = threads_of(backend)
        limits = replace(RUNNING, core=timing_core(), threads=threads)
        modules = ("irgym.envs.graph.runner", "onnxruntime")
        return MeasuringBench(limits=limits, farm=farm, candidates=modules, others=modules)

    def policies(self) -> Mapping[str, Path]:
        """Return the trained policies that ship; none for a variant, since they use all rules."""
        if self._variant is not None:
            return {}
        return policies_in(Path(__file__).parent / "policies", DEFAULT_POLICY)


def threads_of(backend: str | None) -> int:
    """Return the threads of a back end.

    Raises:
        BackendError: There is no such back end.
    """
    match = re.fullmatch(rf"(?:{BACKEND})?(?::([1-9]\d{{0,3}}))?", backend or BACKEND)
    if match is None:
        raise BackendError(f"graph has no back end {backend!r}: choose {BACKEND}, or {BACKEND}:N")
    threads = int(match[1] or 1)
    check_threads(threads)
    return threads


GRAPH = GraphEnvironment()
"""The environment with all rules."""

GRAPH_TASO = GraphEnvironment(
    Variant(
        "graph-taso",
        "graph with the rules of TASO, Tensat and X-RLflow alone; cost: time",
        "TASO",
        MappingProxyType({"x-rlflow": X_RLFLOW}),
    )
)
"""The environment with TASO's rules, which Tensat and X-RLflow use too."""
