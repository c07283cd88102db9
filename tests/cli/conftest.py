from pathlib import Path

import pytest
from commands import Command, Result, without_progress

from irgym.cli.main import main
from irgym.core.catalogue import ENVIRONMENTS


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder that is not there yet."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("IRGYM_CACHE_DIR", str(folder))
    return folder


@pytest.fixture
def irgym(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """Run a command in this process, as its arguments say; there is an environment `passes` too."""
    monkeypatch.setitem(ENVIRONMENTS.builtin, "passes", "passes:PASSES")

    def run(*arguments: object) -> Result:
        code = 0
        try:
            main([str(argument) for argument in arguments])
        except SystemExit as end:
            code = int(end.code or 0)
        captured = capsys.readouterr()
        return Result(code, captured.out, without_progress(captured.err))

    return run
