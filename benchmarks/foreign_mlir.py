"""MLIR files of other projects in the `linalg` environment: a table, as markdown, of which of them run.

A file runs if it loads within a minute, and if the program after a few random actions compiles and gives the
results of the original program. Each file gets a separate process. For a refused file the message names the
obstacle. The files belong to their projects: check these out into one folder first.

    git clone https://github.com/libxsmm/tpp-mlir            # and llvm/torch-mlir, llvm/llvm-project,
    python benchmarks/foreign_mlir.py --checkouts .          # Modern-Compilers-Lab/MLIR-RL
"""

import json
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import tyro

LOADING_S = 60.0
"""Time for a program to load."""

LIMIT_S = 900.0
"""Time for everything about a file."""

STEPS = 8
"""Random actions."""

INPUTS = 3
"""Random inputs that results are compared on."""


@dataclass(frozen=True)
class Foreign:
    """A file of another project.

    Attributes:
        project: Folder of its checkout.
        path: Where it lies in that.
        kind: What it stands for.
        suffix: What a URI has after the file: sizes that it leaves open, and the function that is meant.
    """

    project: str
    path: str
    kind: str
    suffix: str = ""

    @property
    def name(self) -> str:
        """Path and suffix."""
        return self.path + self.suffix


_CPU = "mlir/test/Integration/Dialect/Linalg/CPU"
_CONV_SIZES = "&".join(
    f"arg{place}.{axis}={size}"
    for place, sizes in enumerate([(3, 8, 8, 3), (3, 3, 3, 4), (3, 6, 6, 4)])
    for axis, size in enumerate(sizes)
)

FILES = (
    Foreign("llvm-project", f"{_CPU}/test-tensor-matmul.mlir", "named operation on constants, printed"),
    Foreign("llvm-project", f"{_CPU}/pack-unpack-mmt4d.mlir", "`linalg.pack`, `mmt4d`, `unpack`; helpers"),
    Foreign("llvm-project", f"{_CPU}/ArmNeon/matmul-i8.mlir", "products of int8 added up in int32"),
    Foreign("llvm-project", f"{_CPU}/test-one-shot-bufferize.mlir", "loops around operations, affine"),
    Foreign(
        "llvm-project",
        f"{_CPU}/test-conv-2d-nhwc-hwcf-call.mlir",
        "buffers as arguments, open sizes, old transform script",
        f"?{_CONV_SIZES}#conv_2d_nhwc_hwcf",
    ),
    Foreign(
        "llvm-project", "mlir/test/Dialect/Linalg/decompose-named-ops.mlir", "`linalg.softmax`", "#softmax"
    ),
    Foreign(
        "torch-mlir",
        "test/Dialect/TorchConversion/verify-linalg-on-tensors-backend-contract.mlir",
        "open sizes, an assertion; one of several modules",
        "?arg0.0=64&arg0.1=96&arg1.0=96&arg1.1=32#mm",
    ),
    Foreign(
        "torch-mlir",
        "test/Conversion/TorchToLinalg/pooling.mlir",
        "torch's dialect: pooling, open sizes",
        "?arg0.0=1&arg0.1=8&arg0.2=56&arg0.3=56#forward_max_pool2d",
    ),
    Foreign(
        "torch-mlir",
        "test/Conversion/TorchToLinalg/convolution.mlir",
        "torch's dialect: convolution of float16",
        "#torch.aten.convolution$nobias",
    ),
    Foreign(
        "torch-mlir",
        "test/Conversion/TorchToTMTensor/basic.mlir",
        "torch's dialect: attention with a mask, float16",
        "?arg1.1=32&arg2.1=32&arg3.2=32#sdpa_bool_mask_key_seq_dynamic",
    ),
    Foreign(
        "torch-mlir", "test/Dialect/TMTensor/bufferize.mlir", "`tm_tensor.scan` alone", "#scan_1d_inclusive"
    ),
    Foreign(
        "torch-mlir",
        "test/Conversion/TorchToLinalg/spectral.mlir",
        "torch's dialect: complex numbers",
        "#torch.aten.fft_rfft$2d_last_dim",
    ),
    Foreign(
        "MLIR-RL",
        "llm_action/data/benchmarks/dataset_add/eval/add_256_15_15_304.mlir",
        "benchmark: float64, timers",
    ),
    Foreign("MLIR-RL", "data/lqcd/control/test_AB_1.mlir", "benchmark of LQCD: float64, buffers, timers"),
    Foreign("MLIR-RL", "examples/_matmul.mlir", "timers, called in vain by `main`"),
    Foreign("MLIR-RL", "generated_data/generated_mlir/nn.mlir", "network with its weights in the text"),
    Foreign("MLIR-RL", "generated_data/generated_mlir/resnet18.mlir", "ResNet-18, weights never written"),
    Foreign(
        "MLIR-RL", "generated_data/generated_mlir/transformer/mlir_linalg.mlir", "model saved by TensorFlow"
    ),
    Foreign("tpp-mlir", "benchmarks/mlir/fp32-query-times-key.mlir", "attention's product as a generic"),
    Foreign(
        "tpp-mlir",
        "benchmarks/mlir/pytorch/torch-dynamo-mlp-bf16-3x1024.mlir",
        "from torch dynamo: bfloat16, `ml_program.global`",
    ),
    Foreign(
        "tpp-mlir", "benchmarks/mlir/fp32-pack-gemm-operand-b-512x1024.mlir", "`tensor.pack` of an older MLIR"
    ),
    Foreign(
        "tpp-mlir",
        "test/BF16/Integration/mlp-all-bf16-tpprun.mlir",
        "buffers of bfloat16, globals, `check` dialect",
    ),
    Foreign("tpp-mlir", "test/Integration/conv-on-tensor.mlir", "several functions, loops around products"),
    Foreign("tpp-mlir", "test/Integration/mlp-fp32-1layer-512.mlir", "layer, printed by vectors"),
)
"""Six files of each project, chosen for a breadth of kinds after some trials; not a random sample."""


@dataclass(frozen=True)
class Options:
    """Options of the command line."""

    checkouts: Path = Path("checkouts")
    """Folder with the checkouts tpp-mlir, torch-mlir, MLIR-RL and llvm-project."""
    names: tuple[str, ...] = ()
    """Parts of names; all files if empty."""
    out: Path | None = None
    """File for the table."""
    uri: str | None = None
    """The file to load in this process; for internal use."""


@dataclass(frozen=True)
class Outcome:
    """Outcome of a file.

    Attributes:
        operations: Number of operations of its program; 0 if there is no program.
        turns: Number of operations that a schedule transforms.
        problem: The obstacle; empty if the file runs.
        seconds: Time to load it.
    """

    operations: int
    turns: int
    problem: str
    seconds: float


def run(uri: str) -> Outcome:
    """Load a file in this process, and check a random schedule."""
    from irgym.base.errors import IrgymError
    from irgym.envs.linalg.environment import LINALG

    begun = time.perf_counter()
    operations = turns = 0
    seconds = 0.0
    try:
        task = LINALG.task(uri)
        seconds = time.perf_counter() - begun
        operations, turns = len(task.program.operations), len(task.program.turns)
        if seconds > LOADING_S:
            return Outcome(operations, turns, f"took longer than {LOADING_S:.0f} s to load", seconds)
        rng = np.random.default_rng(0)
        state = task.initial()
        for _ in range(STEPS):
            if not task.terminal(state):
                state = task.step(state, task.space.sample(task.mask(state), rng))
        with LINALG.bench() as bench:
            said = bench.call(task.validation(state, INPUTS, 0))
        problem = "" if said.ok else f"wrong results: {said.detail}"
    except IrgymError as error:
        problem, seconds = str(error), seconds or time.perf_counter() - begun
    return Outcome(operations, turns, problem, seconds)


def apart(foreign: Foreign, checkouts: Path) -> Outcome:
    """Load a file in a separate process, and check a random schedule."""
    path = checkouts / foreign.project / foreign.path
    if not path.exists():
        raise SystemExit(f"{path} is not there: check {foreign.project} out into {checkouts}")
    uri = f"linalg:{path}{foreign.suffix}"
    command = [sys.executable, __file__, "--checkouts", str(checkouts), "--uri", uri]
    begun = time.perf_counter()
    try:
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        return Outcome(0, 0, f"took longer than {LIMIT_S:.0f} s", LIMIT_S)
    if done.returncode == 0:
        outcome = Outcome(**json.loads(done.stdout.splitlines()[-1]))
        folder = str(checkouts / foreign.project)
        problem = outcome.problem.replace(f"{path}", path.name).replace(folder, foreign.project)
        return Outcome(outcome.operations, outcome.turns, " ".join(problem.split()), outcome.seconds)
    said = [line for line in done.stderr.splitlines() if line.strip()] or [f"ended with {done.returncode}"]
    return Outcome(0, 0, said[-1], time.perf_counter() - begun)


def table(rows: list[tuple[Foreign, Outcome]]) -> str:
    """Return the table as markdown."""
    running = sum(not outcome.problem for _, outcome in rows)
    lines = [
        f"{running} of {len(rows)} run.",
        "",
        "| project | file | kind | operations | with a turn | seconds | what became of it |",
        "|---|---|---|---|---|---|---|",
        *(
            f"| {foreign.project} | `{foreign.name}` | {foreign.kind} | {outcome.operations or ''} "
            f"| {outcome.turns or ''} | {outcome.seconds:.1f} | {outcome.problem or 'runs'} |"
            for foreign, outcome in rows
        ),
        "",
        f"Written by `python benchmarks/foreign_mlir.py`, {time.strftime('%Y-%m-%d')}. Seconds are those "
        "until a program is loaded. `with a turn`: operations that a schedule transforms.",
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Load the files one after the other."""
    options = tyro.cli(Options, description=__doc__)
    if options.uri is not None:
        print(json.dumps(asdict(run(options.uri))))
        return
    if not options.checkouts.is_dir():
        print(f"no folder {options.checkouts}: name one with the checkouts by --checkouts")
        return
    rows: list[tuple[Foreign, Outcome]] = []
    for foreign in FILES:
        if options.names and not any(part in foreign.name for part in options.names):
            continue
        outcome = apart(foreign, options.checkouts.resolve())
        rows.append((foreign, outcome))
        print(
            f"{foreign.project:<13}{foreign.kind:<60}{outcome.operations:>4}{outcome.turns:>4}"
            f"{outcome.seconds:>7.1f} s  {outcome.problem or 'runs'}",
            flush=True,
        )
    text = table(rows)
    print(text.splitlines()[0])
    if options.out is not None:
        options.out.write_text(f"# MLIR files of other projects\n\n{text}")


if __name__ == "__main__":
    main()
