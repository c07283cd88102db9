"""The compiled part: XLA's passes behind a C interface."""
