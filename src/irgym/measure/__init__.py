"""Measuring: isolated child processes, the timing protocol, the machine, the cost cache, farms and evaluators."""
