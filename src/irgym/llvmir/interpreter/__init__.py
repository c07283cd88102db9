"""An interpreter of LLVM's IR that tracks poison and translates functions to Python, block by block."""
