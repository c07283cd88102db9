"""irgym: reinforcement learning and search for compiler optimisation, on real compilers."""

from irgym.core.interrupts import leave_when_interrupted, started_as_command

if started_as_command():
    leave_when_interrupted()  # before the imports that take time

from irgym.gym.registration import register_all
from irgym.version import __version__

__all__ = ["__version__"]

register_all()
