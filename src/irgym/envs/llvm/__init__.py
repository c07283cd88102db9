"""LLVM: the order of the passes of LLVM."""
