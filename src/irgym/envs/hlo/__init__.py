"""Environment `hlo`: the order of XLA's passes."""
