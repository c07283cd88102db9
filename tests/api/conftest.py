import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "toys"))

from irgym.core.catalogue import ENVIRONMENTS


@pytest.fixture(autouse=True)
def passes_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is an environment `passes` too."""
    monkeypatch.setitem(ENVIRONMENTS.builtin, "passes", "passes:PASSES")  # pyright: ignore
