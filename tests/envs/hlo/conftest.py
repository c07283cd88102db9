import pytest

from irgym.envs.hlo.pool import Pool


@pytest.fixture(scope="session")
def pool():
    """Two processes for passes: the first test on a machine builds the engine."""
    processes = Pool(2)
    yield processes
    processes.close()
