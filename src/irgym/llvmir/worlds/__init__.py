"""Random worlds: the arguments, memory and call results in which functions run."""
