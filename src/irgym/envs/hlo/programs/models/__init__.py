"""Models in JAX whose training and inference steps are the programs; imported in child processes only."""
