"""The environments, one package each. None imports another."""
