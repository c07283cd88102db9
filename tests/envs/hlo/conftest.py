import pytest

from irgym.envs.hlo.compiling.pool import Pool


@pytest.fixture(scope="session")
def pool(engine):
    """Two processes for passes."""
    processes = Pool(2)
    yield processes
    processes.close()
