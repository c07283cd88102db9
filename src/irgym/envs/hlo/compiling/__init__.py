"""XLA: running passes, compiling and running modules, writing them to files."""
