"""`torch.compile(module, backend="irgym")` on published modules, timed in turn with eager and inductor.

Each module, with random weights, is compiled in a new process with `dynamic=True` and called with two batch
sizes; inductor compiles it in the same way. The table says whether outputs are the module's, how often irgym
tuned for the second batch size, what the first call took, tuning included, and the median ratios of the times
of eager calls and of inductor's calls to ours. Over ALL: the time of the exported graph under ONNX Runtime's
ALL level over the tuned graph's, as irgym timed them in turn; one number for each graph, none where irgym
chose ALL itself or had no time to compare. Rows are kept as they are done, so that a benchmark that was
stopped goes on.

    pip install torchvision transformers
    python benchmarks/torch_compile.py --out docs/measured/torch_compile.md
"""

import json
import os
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

import torch
import tyro
from torch.utils import _pytree as pytree
from torch_published import BUILDERS, built

from irgym.api import torch_compile
from irgym.judging.calls import time_calls
from irgym.judging.history import History
from irgym.judging.statistics import geometric_interval
from irgym.measure.machine import fingerprint, threads_text

ROUNDS = 15
"""Rounds of each comparison in turn."""

ALL = "stop-all"
"""Schedule of a graph that is left to ONNX Runtime's ALL."""

ALLOWED = 1.05
"""Factor by which ours may take longer than eager."""

LIMIT_S = 150.0
"""Seconds after which the process of a module is ended."""


@dataclass(frozen=True)
class Options:
    """Options of the benchmark."""

    modules: tuple[str, ...] = ()
    """Modules by name; all if empty."""
    threads: int = 1
    """Number of threads of all."""
    batches: tuple[int, int] = (4, 7)
    """The batch size that is tuned, and another."""
    seconds: float = 10.0
    """Time for tuning each graph."""
    out: Path | None = None
    """File of the page."""
    runs: Path = Path("runs/torch_compile")
    """Folder of rows, and of irgym's caches meanwhile."""
    child: bool = False
    """For child processes: run the first module here, and print the row as JSON."""

    @property
    def command(self) -> Sequence[str]:
        """Options on which a row depends, as a user types them."""
        batches = map(str, self.batches)
        return ("--seconds", f"{self.seconds:g}", "--threads", str(self.threads), "--batches", *batches)


@dataclass(frozen=True)
class Found:
    """Outcome of a module.

    Attributes:
        same: Whether outputs of both batch sizes are those of the module.
        again: How often irgym tuned a graph for the second batch size.
        said: Warnings of irgym, as where a graph runs as it is.
        first_s: Time of the first call, tuning included, in seconds.
        eager: Median ratios of eager calls' time to ours, by batch size.
        inductor: The same of inductor.
        graphs: Schedule of each graph, and the ratio of ONNX Runtime's ALL; None where it was not compared.
    """

    same: bool
    again: int
    said: Sequence[str]
    first_s: float
    eager: Sequence[float]
    inductor: Sequence[float]
    graphs: Sequence[tuple[str, float | None]]


@dataclass(frozen=True)
class Row:
    """A module and what came of it.

    Attributes:
        module: Its name.
        found: The outcome; None where there is none.
        failed: The reason why there is none; else empty.
    """

    module: str
    found: Found | None
    failed: str = ""


def find(name: str, options: Options) -> Found:
    """Compile a module in this process and time calls of it."""
    torch.set_num_threads(options.threads)
    module, example = built(name)
    tunings = 0

    def counted(graph: Any, inputs: Any, **given: Any) -> Any:
        nonlocal tunings
        tunings += 1
        return torch_compile.backend(graph, inputs, **given)

    given = {"seconds": options.seconds, "threads": options.threads, "reuse": False}
    ours = torch.compile(module, backend=counted, dynamic=True, options=given)
    inductor = torch.compile(module, dynamic=True)
    before = len(_results())
    same, counts, walls, eager, compiled = True, list[int](), list[float](), list[float](), list[float]()
    with torch.inference_mode(), warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for batch in options.batches:
            inputs = example(batch)
            started = time.perf_counter()
            found = ours(**inputs)
            walls.append(time.perf_counter() - started)
            same &= alike(found, module(**inputs))
            counts.append(tunings)
            inductor(**inputs)
            named = [_of_named(function, inputs) for function in (ours, module, inductor)]
            eager.append(time_calls(named[0], named[1], (), ROUNDS, "eager").ratio)
            compiled.append(time_calls(named[0], named[2], (), ROUNDS, "inductor").ratio)
    words = [str(warning.message) for warning in said if "irgym" in str(warning.message)]
    graphs = [(result["schedule"], result["baseline_ratio"]) for result in _results()[before:]]
    return Found(same, counts[1] - counts[0], words, walls[0], eager, compiled, graphs)


def _results() -> list[dict[str, Any]]:
    """Return irgym's records of the results of tuning."""
    file = History().path
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def _of_named(function: Callable[..., Any], inputs: Mapping[str, torch.Tensor]) -> Callable[[], Any]:
    return lambda: function(**inputs)


def alike(found: Any, wanted: Any) -> bool:
    """Say whether results have the same structure, types and, up to rounding, numbers."""
    ours, structure = pytree.tree_flatten(found)
    theirs, other = pytree.tree_flatten(wanted)
    return structure == other and all(
        left.dtype == right.dtype
        and torch.allclose(left, right, rtol=1e-3, atol=1e-3 * float(right.abs().max()))
        if isinstance(right, torch.Tensor)
        else left == right
        for left, right in zip(ours, theirs, strict=True)
    )


def apart(name: str, options: Options) -> Row:
    """Run a module in a process, which is ended with its children if it takes too long."""
    words = [sys.executable, __file__, "--child", "--modules", name, *options.command]
    caches = {"IRGYM_CACHE_DIR": str((options.runs / "caches").absolute())}
    pipe = subprocess.PIPE
    with subprocess.Popen(
        words, stdout=pipe, stderr=pipe, text=True, env=os.environ | caches, start_new_session=True
    ) as process:
        try:
            out, said = process.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return Row(name, None, f"not done after {LIMIT_S:g} s")
    if process.returncode:
        reason = [line for line in said.splitlines() if line.strip()]
        return Row(name, None, reason[-1].replace("|", "/") if reason else f"status {process.returncode}")
    return Row(name, Found(**json.loads(out.splitlines()[-1])))


def rows(names: Sequence[str], options: Options, done: Callable[[Row], None]) -> list[Row]:
    """Return the rows of modules; those of the same options that a file holds are not measured again."""
    file = options.runs / "rows.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    lines = file.read_text().splitlines() if file.exists() else []
    known = {held["module"]: held for held in map(json.loads, lines) if held["command"] == [*options.command]}
    found: list[Row] = []
    for name in names:
        if name in known:
            held = known[name]
            found.append(Row(name, Found(**held["found"]) if held["found"] else None, held["failed"]))
        else:
            found.append(apart(name, options))
            with file.open("a") as kept:
                kept.write(json.dumps({"command": options.command, **asdict(found[-1])}) + "\n")
        done(found[-1])
    return found


def line(row: Row) -> str:
    """Return the row of the table."""
    found = row.found
    if found is None:
        return f"| `{row.module}` | {row.failed} | | | | | | | | |"
    same = "yes" if found.same else "NO"
    ratios = [f"{ratio:.2f}" for ratio in (*found.eager, *found.inductor)]
    over_all = [
        "is ALL" if schedule == ALL else "" if ratio is None else f"{ratio:.2f}"
        for schedule, ratio in found.graphs
    ]
    cells = (f"`{row.module}`", same, str(found.again), f"{found.first_s:.0f}", *ratios, ", ".join(over_all))
    return f"| {' | '.join([*cells, ' '.join(found.said)])} |"


def heads(options: Options) -> Sequence[str]:
    """Return the first lines of the table."""
    first, second = options.batches
    columns = ["module", "same outputs", f"tunings for batch {second}", "first call, s"]
    for other in ("eager", "inductor"):
        columns += [f"over {other}, batch {first}", f"batch {second}"]
    columns += ["over ALL", "warnings"]
    return f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"


def mean(ratios: Sequence[float]) -> str:
    """Return the geometric mean of ratios, with its interval."""
    if not ratios:
        return "unknown"
    interval = geometric_interval(ratios)
    return f"{interval.mean:.3f} ({interval.low:.3f} to {interval.high:.3f})"


def summary(found: Sequence[Row], options: Options) -> list[str]:
    """Return what the rows come to, as points."""
    known = {row.module: row.found for row in found if row.found is not None}
    if not known:
        return [f"None of {len(found)} modules ran."]
    slower = [
        f"`{name}` at batch {batch} ({ratio:.2f})"
        for name, result in known.items()
        for batch, ratio in zip(options.batches, result.eager, strict=True)
        if ratio < 1 / ALLOWED
    ]
    twice = [f"`{name}`" for name, result in known.items() if result.again]
    bare = [f"`{name}`" for name, result in known.items() if result.said]
    graphs = [graph for result in known.values() for graph in result.graphs]
    over_all = [ratio for _, ratio in graphs if ratio is not None]
    points = [
        f"**Outputs**: the module's on {sum(result.same for result in known.values())} of {len(found)} "
        f"modules. With a warning: {', '.join(bare) or 'none'}.",
    ]
    for place, batch in enumerate(options.batches):
        eager = mean([result.eager[place] for result in known.values()])
        inductor = mean([result.inductor[place] for result in known.values()])
        points.append(f"**Batch {batch}**: over eager {eager}, over inductor {inductor}.")
    calls = [result.first_s for result in known.values()]
    return [
        *points,
        f"**Slower than eager beyond 5 %**: {', '.join(slower) or 'none'}.",
        f"**Tuned again for batch {options.batches[1]}**: {', '.join(twice) or 'none'}.",
        f"**Over ONNX Runtime's ALL**: {mean(over_all)}, of {len(over_all)} graphs; "
        f"{sum(schedule == ALL for schedule, _ in graphs)} of {len(graphs)} graphs are left to ALL itself.",
        f"**First call**: {median(calls):.0f} s (median), at most {max(calls):.0f} s.",
        "Geometric means, with 95 % confidence intervals.",
    ]


def page(found: Sequence[Row], options: Options) -> str:
    """Return the page of the results."""
    packages = ", ".join(
        f"{name} {version(name)}" for name in ("torch", "torchvision", "transformers", "onnxruntime")
    )
    named = ("--modules", *options.modules) if options.modules else ()
    points = [
        f"**Command**: `python benchmarks/torch_compile.py {' '.join((*options.command, *named))}`.",
        *summary(found, options),
        f"{packages}; {fingerprint().text()}, {threads_text(options.threads)}; {datetime.now(UTC):%Y-%m-%d}.",
    ]
    title = '# Measured: torch.compile with backend="irgym"'
    told = [title, "", *(f"- {point}" for point in points), "", *heads(options), *map(line, found), ""]
    return "\n".join(told)


def main() -> None:
    """Run all."""
    options = tyro.cli(Options, description=__doc__)
    names = options.modules or tuple(BUILDERS)
    if unknown := set(names) - set(BUILDERS):
        raise SystemExit(f"no module {', '.join(sorted(unknown))}: choose among {', '.join(BUILDERS)}")
    if options.child:
        print(json.dumps(asdict(find(names[0], options))))
        return
    print(*heads(options), sep="\n", flush=True)
    found = rows(names, options, lambda row: print(line(row), flush=True))
    print("", *summary(found, options), sep="\n")
    if options.out is not None:
        options.out.write_text(page(found, options))


if __name__ == "__main__":
    main()
