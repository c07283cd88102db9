"""Models in JAX, whose training and inference steps are the programs. For child processes only."""
