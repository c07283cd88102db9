import subprocess
import sys

import gymnasium

import irgym  # noqa: F401
from irgym.core.catalogue import ENVIRONMENTS
from irgym.gym.registration import gym_id


def test_every_environment_is_registered():
    for name in ENVIRONMENTS.names():
        assert gymnasium.spec(gym_id(name)).kwargs == {"environment": name}
    assert {"irgym/Loops-v0", "irgym/Hlo-v0", "irgym/LinalgSwaps-v0"} <= set(gymnasium.registry)


def test_gymnasium_imports_irgym_by_the_name_of_its_module():
    program = (
        "import gymnasium; gymnasium.make('irgym:irgym/Loops-v0', programs=['loops://mm/8x8x8']).close()"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_registration_imports_no_environment():
    program = "import sys, irgym; assert not [name for name in sys.modules if name.startswith('irgym.envs')]"
    subprocess.run([sys.executable, "-c", program], check=True)
