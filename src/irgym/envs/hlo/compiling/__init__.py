"""XLA: running passes, compiling and running modules, exporting them."""
