"""Programs in C: irgym's kernels, pinned packages, and their compilation to IR."""
