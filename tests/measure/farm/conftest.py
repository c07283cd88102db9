"""Farms of real processes on this machine."""

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("distributed")
pytest.importorskip("irgym.measure.farm.slurm")  # by way of it: dask_jobqueue itself takes over SIGINT

from farm_site import Site

DROPPED = "ignore:unclosed <s:ResourceWarning"
"""Dask drops sockets without closing them: where a connection is refused, or its scheduler dies."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let Dask drop its sockets in the tests of farms."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.filterwarnings(DROPPED))


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    opened = Site(tmp_path)
    yield opened
    opened.close()


@pytest.fixture(scope="package")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A scheduler and two workers for tests that do not harm them."""
    opened = Site(tmp_path_factory.mktemp("site"))
    try:
        opened.serve()
        opened.workers("anna", "bert")
        yield opened
    finally:
        opened.close()
