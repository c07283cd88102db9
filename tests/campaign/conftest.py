import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from campaign_options import Row
from campaign_runner import Run, Runner
from commands import Result

KINDS: dict[str, Callable[[Path], object]] = {
    "folder": Path.mkdir,
    "fifo": os.mkfifo,
    "loop": lambda path: path.symlink_to(path.name),
    "garbage": lambda path: path.write_bytes(bytes(range(256)) * 16),
    "latin": lambda path: path.write_bytes("naïve".encode("latin-1")),
    "empty": lambda path: path.write_bytes(b""),
}
"""How files of each kind are made."""


@pytest.fixture(scope="session")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files that commands are told to read: none is what it should be, but for `run`."""
    folder = tmp_path_factory.mktemp("inputs")
    for kind, make in KINDS.items():
        for suffix in ("", ".hlo", ".mlir"):
            make(folder / f"{kind}{suffix}")
        (folder / f"run-{kind}").mkdir()
        for name in ("config.json", "metrics.jsonl", "comparison.json", "evaluation.json", "steps.json"):
            make(folder / f"run-{kind}" / name)
    return folder


@pytest.fixture(scope="session")
def run(inputs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """Run command lines, all in one process; there is an environment `passes`, and a run of it."""
    pytest.importorskip("torch")
    runner = Runner({"IRGYM_CACHE_DIR": str(tmp_path_factory.mktemp("cache"))})
    training = (
        "train",
        "passes",
        "--run",
        str(inputs / "run"),
        "--iterations",
        "1",
        "--set",
        "episodes=2",
        "hidden=8",
    )
    result = runner.run(list(training), inputs)
    assert result.code == 0, result

    def one(row: Row, folder: Path) -> Result:
        return runner.run([word.replace("{inputs}", str(inputs)) for word in row.arguments], folder)

    yield one
    runner.close()
