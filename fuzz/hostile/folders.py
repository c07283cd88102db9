"""Hostile run folders, policies, checkpoints and caches."""

import io
import json
import os
import sqlite3
import sys
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import torch

import irgym as irgym_package
from fuzz.hostile.archives import pickled, torch_pickled
from fuzz.hostile.case import Maker, Opening, irgym, tune

SHIPPED = Path(irgym_package.__file__).parent / "envs/loops/policies/contractions.pt"
PROGRAM = "loops://mm/8x8x8"


def _policy(content: Callable[[str], bytes]) -> Maker:
    """Return a maker of a policy, which is evaluated on a program."""

    def make(folder: Path, payload: str) -> Opening:
        (folder / "policy.pt").write_bytes(content(payload))
        return _followed(folder)

    return make


def _followed(folder: Path) -> Opening:
    return tune(PROGRAM, "--search", "guided", "--policy", str(folder / "policy.pt"), refused=True)


def _edited(edit: Callable[[dict[str, bytes]], object], compression: int = zipfile.ZIP_STORED) -> Maker:
    """Return a maker of a shipped policy with changed entries in its archive."""

    def make(folder: Path, _: str) -> Opening:
        with zipfile.ZipFile(SHIPPED) as archive:
            entries = {name: archive.read(name) for name in archive.namelist()}
        edit(entries)
        with zipfile.ZipFile(folder / "policy.pt", "w", compression) as archive:
            for name, content in entries.items():
                archive.writestr(name, content)
        return _followed(folder)

    return make


def _pickled(content: bytes) -> Maker:
    """Return a maker of a policy with another pickle in its archive."""

    def edit(entries: dict[str, bytes]) -> None:
        entries[next(name for name in entries if name.endswith("data.pkl"))] = content

    return _edited(edit)


def _expanded(folder: Path, _: str) -> Opening:
    """Make a policy whose first tensor is expanded to 2 ** 40 elements of one number."""
    content = torch.load(SHIPPED, weights_only=True)
    _replace_first(content, torch.zeros(1).expand(1 << 40))
    torch.save(content, folder / "policy.pt")
    return _followed(folder)


def _replace_first(value: object, tensor: torch.Tensor) -> bool:
    if isinstance(value, dict):
        for key, inner in value.items():
            if isinstance(inner, torch.Tensor):
                value[key] = tensor
                return True
            if _replace_first(inner, tensor):
                return True
    return False


def _bomb(folder: Path, _: str) -> Opening:
    """Make a policy that unpacks to 5 GiB."""
    with zipfile.ZipFile(folder / "policy.pt", "w", zipfile.ZIP_DEFLATED) as archive:
        with zipfile.ZipFile(SHIPPED) as shipped:
            for name in shipped.namelist():
                archive.writestr(name, shipped.read(name))
        with archive.open("policy/data/999999", "w", force_zip64=True) as entry:
            for _ in range(5 << 6):
                entry.write(bytes(1 << 24))
    return _followed(folder)


def _lying(folder: Path, _: str) -> Opening:
    """Make a policy whose archive says that an entry is larger than it is."""
    content = bytearray(SHIPPED.read_bytes())
    place = content.rfind(b"PK\x01\x02")
    content[place + 20 : place + 28] = b"\xff\xff\xff\x7f" * 2
    (folder / "policy.pt").write_bytes(content)
    return _followed(folder)


def _program_policy(make: Callable[[Path], object]) -> Maker:
    def made(folder: Path, _: str) -> Opening:
        make(folder / "policy.pt")
        return _followed(folder)

    return made


def _sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(100 << 30)


CONFIG = {
    "environment": "loops", "dataset": "mm-small", "agent": "ppo", "objective": "time", "seed": 0,
}  # fmt: skip


def _run(files: Mapping[str, Callable[[str], str | bytes]], *command: str) -> Maker:
    """Return a maker of a run folder, which is given to a command."""

    def make(folder: Path, payload: str) -> Opening:
        run = folder / "run"
        run.mkdir()
        (run / "config.json").write_text(json.dumps(CONFIG))
        for name, content in files.items():
            made = content(payload)
            (run / name).write_bytes(made.encode() if isinstance(made, str) else made)
        return irgym(*command, run, refused=True)

    return make


def _resumed(content: Callable[[str], bytes]) -> Maker:
    """Return a maker that trains for an iteration, replaces the checkpoint, and resumes."""

    def make(folder: Path, payload: str) -> Opening:
        (folder / "checkpoint.pt").write_bytes(content(payload))
        script = (
            "import shutil, subprocess, sys\n"
            "common = [sys.executable, '-m', 'irgym', 'train', 'loops', '--run', 'run', '--agent', 'ppo',\n"
            "    '--limit', '1', '--set', 'episodes=2']\n"
            "subprocess.run([*common, '--iterations', '1'], stderr=subprocess.DEVNULL)\n"
            "shutil.copy('work/checkpoint.pt', 'run/checkpoint.pt')\n"
            "shutil.copy('work/checkpoint.pt', 'run/checkpoint.previous.pt')\n"
            "sys.exit(subprocess.run([*common, '--iterations', '2', '--resume']).returncode)\n"
        )
        return Opening((sys.executable, "-c", script), refused=True)

    return make


def _expanded_checkpoint(_: str) -> bytes:
    buffer = io.BytesIO()
    torch.save({"kind": "checkpoint", "format": 1, "weights": torch.zeros(1).expand(1 << 40)}, buffer)
    return buffer.getvalue()


def _fifo_run(folder: Path, _: str) -> Opening:
    (folder / "run").mkdir()
    os.mkfifo(folder / "run/config.json")
    return irgym("report", folder / "run", refused=True)


def _cache(statement: str, *values: object) -> Maker:
    """Return a maker that fills the cost cache by SQL, and tunes with it."""

    def make(folder: Path, _: str) -> Opening:
        path = folder.parent / "cache" / "costs.sqlite"
        path.parent.mkdir(exist_ok=True)
        with sqlite3.connect(path) as database:
            database.execute(statement, values)
        return irgym("cache", "stats", refused=True)

    return make


def _cache_pickle(folder: Path, payload: str) -> Opening:
    """Make a cost cache that is a pickle."""
    path = folder.parent / "cache" / "costs.sqlite"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(pickled(payload))
    return irgym("cache", "stats", refused=True)


def _deep(_: str) -> str:
    return "[" * 100_000 + "]" * 100_000


def _digits(_: str) -> str:
    return '{"iteration": ' + "9" * 10_000 + "}"


CASES: Mapping[str, Maker] = {
    "policy_pickle": _policy(torch_pickled),
    "policy_plain_pickle": _policy(pickled),
    "policy_pickle_in_archive": _pickled(b"cos\nsystem\n(S'x'\ntR."),
    "policy_memo_bomb": _pickled(b"\x80\x02]r\xff\xff\xff\x7f."),
    "policy_long_bomb": _pickled(b"\x80\x02\x8b\xff\xff\xff\x7f."),
    "policy_bytes_bomb": _pickled(b"\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\x0f."),
    "policy_nested_lists": _pickled(b"\x80\x02" + b"]" * 100_000 + b"a" * 99_999 + b"."),
    "policy_expanded_2_40": _expanded,
    "policy_bomb": _bomb,
    "policy_sizes_lie": _lying,
    "policy_fifo": _program_policy(os.mkfifo),
    "policy_sparse_100_gib": _program_policy(_sparse),
    "policy_dev_zero": _program_policy(lambda path: path.symlink_to("/dev/zero")),
    "policy_folder": _program_policy(Path.mkdir),
    "checkpoint_pickle": _resumed(torch_pickled),
    "checkpoint_expanded_2_40": _resumed(_expanded_checkpoint),
    "checkpoint_garbage": _resumed(lambda _: b"PK\x03\x04" + bytes(1000)),
    "run_config_nested": _run({"config.json": _deep}, "report"),
    "run_config_digits": _run({"config.json": _digits}, "report"),
    "run_config_list": _run({"config.json": lambda _: "[1]"}, "evaluate"),
    "run_metrics_nested": _run({"metrics.jsonl": _deep}, "report"),
    "run_metrics_digits": _run({"metrics.jsonl": _digits}, "report"),
    "run_evaluation_nested": _run({"evaluation.json": _deep}, "report"),
    "run_comparison_nested": _run({"comparison.json": _deep}, "report"),
    "run_policy_pickle": _run({"policy.pt": torch_pickled}, "evaluate"),
    "run_config_fifo": _fifo_run,
    "cache_pickle": _cache_pickle,
    "cache_other_table": _cache("CREATE TABLE costs (a, b)"),
}
"""Folders, by name."""
