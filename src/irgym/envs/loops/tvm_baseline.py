"""TVM's MetaSchedule as a baseline, built and run in this process.

TVM's default builder and runner start process pools. In process, a trial costs less, and this child is
isolated already.
"""

# TVM has no type declarations, and may be missing where this is checked.
# pyright: reportMissingTypeStubs=false, reportMissingImports=false, reportUntypedBaseClass=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportUnknownParameterType=false, reportUntypedClassDecorator=false

import logging
import math
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from irgym.base.errors import BackendError
from irgym.envs.loops.programs.contraction import Axis, Contraction, Tensor
from irgym.measure.arrays import aligned
from irgym.measure.machine import tell


def _einsum(te: Any, contraction: Contraction) -> list[Any]:
    """Return TVM placeholders for A and B and the tensor C computed from them."""
    shapes = contraction.shapes
    a, b = te.placeholder(shapes[0], name="A"), te.placeholder(shapes[1], name="B")
    sums = {
        dim: te.reduce_axis((0, size), name=dim)
        for dim, size in contraction.dims
        if dim in contraction.reductions
    }

    def compute(*outputs: Any) -> Any:
        indices = dict(sums)
        indices.update({axis.terms[0][0]: index for axis, index in zip(contraction.c, outputs, strict=True)})

        def element(axis: Axis) -> Any:
            total: Any = axis.offset
            for dim, factor in axis.terms:
                total = total + factor * indices[dim]
            return total

        product = a[tuple(map(element, contraction.a))] * b[tuple(map(element, contraction.b))]
        return te.sum(product, axis=list(sums.values())) if sums else product

    return [a, b, te.compute(shapes[2], compute, name="C")]


@dataclass
class _Progress:
    """Trials so far and the least time among them, told after each trial."""

    trials: int
    done: int = 0
    least_s: float = math.inf

    def add(self, seconds: Sequence[float]) -> None:
        """Count a trial with its run times, and tell."""
        self.done += 1
        self.least_s = min([self.least_s, *seconds])
        tell(f"trial {self.done} of {self.trials}, best {1e6 * self.least_s:.3g} us")


def _in_process(
    build: Callable[[Any, Any], Any], device: Any, arguments: list[Any], progress: _Progress
) -> tuple[Any, Any]:
    """Return a builder and a runner for MetaSchedule that stay in this process and run on `arguments`."""
    from tvm.ir.utils import derived_object
    from tvm.s_tir.meta_schedule.builder import BuilderResult, PyBuilder
    from tvm.s_tir.meta_schedule.runner import EvaluatorConfig, PyRunner, PyRunnerFuture, RunnerResult
    from tvm.s_tir.meta_schedule.runner.utils import run_evaluator_common

    modules: dict[str, Any] = {}
    config = EvaluatorConfig(number=3, repeat=1, min_repeat_ms=20)

    class Builder(PyBuilder):
        def build(self, build_inputs: list[Any]) -> list[Any]:
            results: list[Any] = []
            for item in build_inputs:
                key = str(len(modules))
                modules[key] = build(item.mod, item.target)
                results.append(BuilderResult(key, None))
            return results

    class Future(PyRunnerFuture):
        def __init__(self, seconds: list[float]) -> None:
            super().__init__()
            self.seconds = seconds

        def done(self) -> bool:
            return True

        def result(self) -> Any:
            return RunnerResult(self.seconds, None)

    class Runner(PyRunner):
        def run(self, runner_inputs: list[Any]) -> list[Any]:
            futures: list[Any] = []
            for item in runner_inputs:
                module = modules.pop(item.artifact_path)
                seconds: list[float] = run_evaluator_common(module, device, config, [arguments])
                progress.add(seconds)
                futures.append(derived_object(Future)(seconds))
            return futures

    return derived_object(Builder)(), derived_object(Runner)()


def tune(
    contraction: Contraction, a: Tensor, b: Tensor, trials: int
) -> tuple[Callable[[], Any], Callable[[], NDArray[np.floating]], str]:
    """Tune, build and bind the contraction to its inputs.

    Returns:
        A function that computes the result once, one that returns it, and a description.

    Raises:
        BackendError: TVM is not installed, or found no schedule.
    """
    try:
        import tvm
        from tvm import te
        from tvm.s_tir import meta_schedule
        from tvm.s_tir.meta_schedule.builder.local_builder import default_build
        from tvm.s_tir.meta_schedule.measure_callback import AddToDatabase, UpdateCostModel
    except ImportError:
        raise BackendError("TVM is not installed: run pip install 'irgym[tvm]'") from None
    logging.getLogger("tvm").setLevel(logging.WARNING)
    target: Any = tvm.target.Target(
        {"kind": "llvm", "mcpu": tvm.target.codegen.llvm_get_system_cpu(), "num-cores": 1}
    )
    function: Any = te.create_prim_func(_einsum(te, contraction))
    arguments: list[Any] = [tvm.runtime.tensor(array) for array in (a, b, aligned(contraction.shapes[2]))]
    builder, runner = _in_process(
        lambda module, chosen: default_build(module, chosen, None),
        tvm.cpu(0),
        arguments,
        _Progress(trials),
    )
    with tempfile.TemporaryDirectory() as work:
        database = meta_schedule.tune_tir(
            mod=function,
            target=target,
            work_dir=str(Path(work)),
            max_trials_global=trials,
            num_trials_per_iter=min(trials, 64),
            builder=builder,
            runner=runner,
            measure_callbacks=[AddToDatabase(), UpdateCostModel()],
            num_tuning_cores=1,
            seed=0,
        )
        best: Any = meta_schedule.tir_integration.compile_tir(database, function, target)
    if best is None:
        raise BackendError(f"TVM found no schedule for {contraction.uri}: leave tvm out of the methods")
    kernel: Any = default_build(best.mod, target, None)["main"]

    def result() -> NDArray[np.floating]:
        return arguments[2].numpy()

    return (
        lambda: kernel(*arguments),
        result,
        f"TVM {tvm.__version__} MetaSchedule, {trials} trials, 1 thread",
    )
