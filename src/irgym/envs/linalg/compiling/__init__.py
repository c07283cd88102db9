"""MLIR and LLVM: apply schedules, lower, compile, run on threads, export. Mostly imported in a child only."""
