import sys
from pathlib import Path

import pytest

from irgym.core.cost import Call
from irgym.measure.isolation.child import Child, Limits


@pytest.fixture(autouse=True)
def planted_path(monkeypatch):
    """Let this process and its children import the planted functions."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    yield
    for name in [name for name in sys.modules if name.startswith("planted")]:
        del sys.modules[name]


@pytest.fixture
def planted():
    def build(name, *arguments):
        return Call(f"planted:{name}", arguments)

    return build


@pytest.fixture
def child():
    with Child(Limits(timeout_s=0.3)) as process:
        yield process
