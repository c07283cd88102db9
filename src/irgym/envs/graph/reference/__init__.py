"""What operators mean: their values in numpy, in the precision of their inputs, and their types."""
