"""`--target`: code, costs and words of a target that is less than this machine."""

import json
import sqlite3
from pathlib import Path

import pytest
from commands import Command
from disassembly import functions, needs_avx512, needs_objdump

from irgym.measure.machine import core_count
from irgym.measure.target import host_target

PROGRAM = "loops://mm/64x64x64"
SCHEDULE = "split_8 down swap_down down split_32 swap_up swap_up"
V3 = ("--target", "x86-64-v3")


@needs_avx512
@needs_objdump
@pytest.mark.parametrize("backend", [None, "llvm"])
def test_avx2_code_of_loops_is_made_on_an_avx512_machine(irgym: Command, backend: str | None, tmp_path: Path):
    if backend == "llvm":
        pytest.importorskip("llvmlite")
    chosen = () if backend is None else ("--backend", backend)
    code = {}
    for target in (V3, ()):
        path = tmp_path / f"{len(target)}.o"
        result = irgym("replay", PROGRAM, SCHEDULE, *target, *chosen, "--export", path)
        assert result.code == 0 and "validated" in result.out, result.err
        assert ("code for x86-64-v3" in result.out) == bool(target)
        code[target] = functions(path)["irgym_kernel"]
    assert code[V3].fused and code[V3].wide and not code[V3].evex
    assert code[()].fused and code[()].evex


@needs_avx512
def test_costs_of_two_targets_are_kept_apart(irgym: Command, cache: Path, tmp_path: Path):
    search = ("--search", "random", "--evaluations", "3")
    for target in (V3, ("--target", "x86-64-v4"), ()):
        data = tmp_path / "data.json"
        assert irgym("tune", PROGRAM, *search, *target, "--json", data).code == 0
        assert json.loads(data.read_text())["target"] == (target or ("", "x86-64-v4"))[1]
    with sqlite3.connect(cache / "costs.sqlite") as database:
        rows = database.execute("SELECT target, schedule FROM costs JOIN contexts ON context = id").fetchall()
    database.close()
    counts = {
        name: sum(text.startswith(f"{name} ") for text, _ in rows) for name in ("x86-64-v3", "x86-64-v4")
    }
    assert counts == {"x86-64-v3": 3, "x86-64-v4": 3}, "the last search found its costs recorded"


def test_a_back_end_and_a_target_that_contradict_each_other(irgym: Command):
    if host_target().name not in ("x86-64-v3", "x86-64-v4"):
        pytest.skip("needs AVX2")
    result = irgym("replay", PROGRAM, "", "--backend", "avx2", "--target", "x86-64")
    assert result.code == 2 and result.err.count("\n") == 1
    assert "the back end avx2 makes code for x86-64-v3, not for the target x86-64" in result.err


@pytest.mark.parametrize("command", ["tune", "compare", "imitate", "train"])
def test_a_target_of_another_architecture_is_refused(irgym: Command, command: str, tmp_path: Path):
    other = "aarch64" if host_target().architecture == "x86_64" else "x86-64"
    arguments = {
        "tune": (PROGRAM,),
        "compare": ("loops", "--programs", PROGRAM, "--methods", "base"),
        "imitate": ("loops", "--out", tmp_path / "policy.pt", "--searched", 1),
        "train": ("loops", "--run", tmp_path / "run"),
    }
    if command in ("imitate", "train"):
        pytest.importorskip("torch")
    result = irgym(command, *arguments[command], "--target", other)
    assert result.code == 2 and f"does not run code for {other}" in result.err


@needs_avx512
@pytest.mark.parametrize("target", ["x86-64-v3", "x86-64"])
def test_a_policy_of_another_target_says_so_once(irgym: Command, target: str, tmp_path: Path):
    pytest.importorskip("torch")
    pytest.importorskip("llvmlite")
    unknown = (
        "irgym: the policy default was trained for x86-64-v4, x86-64-v3, not for x86-64: its schedules "
        "may be poor here\n"
    )
    # What holds numpy to AVX2 is known, what holds it to less is not.
    said, limited = ("", "limited") if target == "x86-64-v3" else (unknown, "not limited")
    methods = (
        "--methods",
        "policy:default,guided:default",
        "--evaluations",
        "2",
        "--json",
        tmp_path / "c.json",
    )
    assert irgym("compare", "loops", "--programs", PROGRAM, *methods).err == ""
    (tmp_path / "c.json").unlink()
    result = irgym("compare", "loops", "--programs", PROGRAM, *methods, "--target", target)
    assert (result.code, result.err) == (0, said)
    data = json.loads((tmp_path / "c.json").read_text())
    assert data["settings"]["target"] == target and data["machine"].endswith(f"code for {target}")
    assert all(row["basis"]["target"].startswith(f"{target} ") for row in data["rows"])
    assert f"1 thread, {limited} to {target}" in data["settings"]["baseline"]
    result = irgym("compare", "loops", "--programs", PROGRAM, *methods, "--resume")
    assert result.code == 2 and f"have target = {target}, not x86-64-v4" in result.err


@needs_avx512
def test_a_run_is_evaluated_for_the_target_that_it_was_trained_for(irgym: Command, tmp_path: Path):
    pytest.importorskip("torch")
    run, data = tmp_path / "run", ("--dataset", "mm_random:count=8,low=8,high=24,seed=1")
    small = ("--iterations", 1, "--set", "episodes=4", "hidden=8")
    result = irgym("train", "loops", "--run", run, *data, *V3, *small)
    assert result.code == 0 and "code for x86-64-v3" in result.out, result.err
    assert json.loads((run / "config.json").read_text())["targets"] == ["x86-64-v3"]
    assert irgym("evaluate", run, "--limit", 1).err == ""
    assert json.loads((run / "evaluation.json").read_text())["settings"]["target"] == "x86-64-v3"
    result = irgym("evaluate", run, "--limit", 1, "--target", "x86-64-v4")
    assert result.code == 0 and "was trained for x86-64-v3, not for x86-64-v4" in result.err
    out = tmp_path / "policy.pt"
    result = irgym(
        "imitate", "loops", "--out", out, *data, *V3, "--searched", 1, "--evaluations", 2, "--programs", 0
    )
    assert result.code == 0, result.err

    from irgym.networks.policy import TorchPolicy

    assert [TorchPolicy.load(path).targets for path in (run / "policy.pt", out)] == [("x86-64-v3",)] * 2


@needs_avx512
def test_a_policy_learns_for_several_targets_together(irgym: Command, tmp_path: Path):
    pytest.importorskip("torch")
    run, data = tmp_path / "run", ("--dataset", "mm_random:count=8,low=8,high=24,seed=1")
    both = ("--target", "x86-64-v4,x86-64-v3")
    out = tmp_path / "policy.pt"
    few = ("--searched", 2, "--evaluations", 2, "--programs", 2)
    result = irgym("imitate", "loops", "--out", out, *data, *both, *few)
    assert result.code == 0 and "2 programs" in result.out, result.err
    small = ("--iterations", 1, "--set", "episodes=8", f"start={out}")
    result = irgym("train", "loops", "--run", run, *data, *both, *small)
    assert result.code == 0 and "code for x86-64-v3" in result.out, result.err
    config = json.loads((run / "config.json").read_text())
    assert config["targets"] == ["x86-64-v4", "x86-64-v3"] and len(config["peaks"]) == 2

    from irgym.networks.policy import TorchPolicy

    names = ("x86-64-v4", "x86-64-v3")
    assert [TorchPolicy.load(path).targets for path in (run / "policy.pt", out)] == [names] * 2
    # On this machine, which is one of them.
    assert irgym("evaluate", run, "--limit", 1).err == ""
    assert json.loads((run / "evaluation.json").read_text())["settings"]["target"] == host_target().name
    result = irgym("train", "loops", "--run", tmp_path / "other", "--target", "x86-64-v3,avx9")
    assert result.code == 2 and "no target 'avx9'" in result.err


def test_counts_depend_on_no_target(irgym: Command, tmp_path: Path):
    result = irgym("replay", "passes://mlp/40-0-20-0-0-7-0-0", "fold0", *V3, "--json", tmp_path / "a.json")
    data = json.loads((tmp_path / "a.json").read_text())
    assert result.code == 0 and data["target"] is None and "code for" not in data["machine"]


@pytest.mark.timed  # spinning threads wait for ever beside another process
@pytest.mark.parametrize(
    "program", ["loops://mm/24x24x24", "linalg://matmul/16x16x16"], ids=["loops", "linalg"]
)
def test_threads_are_those_of_code_and_baseline(irgym: Command, program: str, tmp_path: Path):
    if core_count() < 2:
        pytest.skip("one core")
    data = tmp_path / "data.json"
    result = irgym(
        "tune", program, "--threads", "2", "--search", "random", "--evaluations", "2", "--json", data
    )
    assert result.code == 0, result.err
    told = json.loads(data.read_text())
    assert "2 threads" in told["machine"] and "2 threads" in result.out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--threads", "0"), "give at least 1"),
        (("--threads", "2", "--backend", "avx2:2"), "leave one out"),
        (("--threads", "9999"), "cores here"),
        (("--threads", "2", "--export", "k.so"), "this back end exports nothing"),
    ],
)
def test_threads_that_make_no_sense_are_refused(irgym: Command, options: tuple[str, ...], said: str):
    result = irgym("tune", "loops://mm/24x24x24", "--evaluations", "2", *options)
    assert result.code == 2 and said in result.err


def test_an_environment_without_threads_says_so(irgym: Command):
    result = irgym("tune", "hlo://gpt2?layers=1", "--threads", "2", "--evaluations", "2")
    assert result.code == 2 and "one thread: leave out --threads" in result.err
