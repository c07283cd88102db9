"""Functions of `cse` as methods of the JIT CSE gymnasium."""

from collections.abc import Sequence

from irgym.base.errors import IrgymError
from irgym.core.bench import Bench
from irgym.core.schedule import replay
from irgym.envs.cse.environment import CSE
from irgym.envs.cse.jitcse.methods import CompiledMethod, CompileFailed, CseCandidate
from irgym.envs.cse.state import CseState
from irgym.envs.cse.task import COST_TEST, CseTask
from irgym.llvmir.ir.syntax import bare
from irgym.llvmir.ir.types import Register, type_of

_TYPES = {"i64": 2, "ptr": 2, "float": 3, "double": 4}
"""Type numbers by LLVM type, except those of other integers and of vectors."""

_INT, _SIMD = 1, 6

_BYTES = {"load": 4, "call": 5, "getelementptr": 4}
"""Approximate size of x86 code in bytes by operation; 3 for others."""


class LlvmCompiler:
    """Compiles functions by their URIs.

    Features of the .NET JIT without a counterpart in LLVM's IR are 0: `const`, `shared_const`, `make_cse`.

    Args:
        target: Name of the target; by default that of `cse`.
    """

    def __init__(self, target: str | None = None) -> None:
        self._target = target
        self._tasks: dict[str, CseTask] = {}
        self._bench: Bench | None = None

    def compile(self, index: str, chosen: Sequence[int] | None) -> CompiledMethod:
        """Return a function with some candidates shared; see `Compiler.compile`."""
        try:
            task = self._task(index)
            if chosen is None:
                chosen = sorted(replay(task, task.pipeline(COST_TEST)).shared)
            if self._bench is None:
                self._bench = CSE.bench()
            [measured] = self._bench.evaluator.evaluate([task.job(CseState(frozenset(chosen)))])
        except IrgymError as error:
            raise CompileFailed(str(error)) from error
        if not measured.ok:
            raise CompileFailed(f"{index} cannot be compiled with {list(chosen)} shared: {measured.detail}")
        candidates = tuple(_candidate(task, place, chosen) for place in range(len(task.names)))
        return CompiledMethod(
            index, bare(task.analysed.function.name), measured.cost, candidates, tuple(chosen)
        )

    def close(self) -> None:
        """End the compiling process."""
        if self._bench is not None:
            self._bench.close()
            self._bench = None

    def _task(self, uri: str) -> CseTask:
        if uri not in self._tasks:
            self._tasks[uri] = CSE.task(uri, target=self._target)
        return self._tasks[uri]


def _candidate(task: CseTask, place: int, chosen: Sequence[int]) -> CseCandidate:
    facts, candidate = task.surroundings.facts[place], task.analysed.candidates[place]
    made = task.analysed.values.made[candidate.leaders[0]]
    signs = {
        "can_apply": place not in chosen,
        "live_across_call": facts.across_calls,
        "const": False,
        "shared_const": False,
        "make_cse": False,
        "has_call": candidate.opcode == "call",
        "containable": facts.folded == 1.0,
    }
    numbers = {
        "cost_ex": facts.cost,
        "cost_sz": float(_BYTES.get(candidate.opcode, 3)),
        "use_count": float(len(candidate.replaced)),
        "def_count": float(len(candidate.leaders)),
        "use_wt_cnt": facts.saved,
        "def_wt_cnt": facts.made,
        "distinct_locals": float(len(set(made.operands))),
        "local_occurrences": float(len(made.operands)),
        "enreg_count": float(facts.pressure),
    }
    return CseCandidate(place, _type(type_of(made), facts.register), signs, numbers)


def _type(kind: str, register: Register) -> int:
    """Return the number of a type; 0 for types that the .NET JIT does not have."""
    return _TYPES.get(kind, {"integer": _INT, "vector": _SIMD}.get(register, 0))
