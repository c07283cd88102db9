"""irgym: reinforcement learning and search for compiler optimisation, on real compilers."""

from irgym.core.gym_registration import register_all

register_all()
