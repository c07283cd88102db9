"""Neural networks, to be trained or only run."""
