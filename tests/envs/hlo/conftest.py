import pytest

from irgym.core.errors import BackendError
from irgym.envs.hlo.native.build import build
from irgym.envs.hlo.pool import Pool


@pytest.fixture(scope="session")
def engine():
    """Skip what needs XLA's passes where they cannot be built; they were built before the first test."""
    try:
        build()
    except BackendError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def pool(engine):
    """Two processes for passes."""
    processes = Pool(2)
    yield processes
    processes.close()
