"""MLIR and LLVM: transform, lower, compile, run on threads, export. In a child only, but for the names."""
