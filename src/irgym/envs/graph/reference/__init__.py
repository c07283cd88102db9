"""Reference semantics of operators: results in numpy, in the precision of the inputs, and their types."""
