"""Environment `hlo`: which XLA pass to run next."""
