"""Checks of the results of loop nests: inputs and tolerances."""
