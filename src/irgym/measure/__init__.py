"""Measuring: isolated processes, the timing protocol, the machine, the cost cache, farms, evaluators."""
