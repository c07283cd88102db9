"""irgym: reinforcement learning and search for compiler optimisation, on real compilers."""
