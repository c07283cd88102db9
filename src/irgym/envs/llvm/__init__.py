"""Orders of the passes of LLVM."""
