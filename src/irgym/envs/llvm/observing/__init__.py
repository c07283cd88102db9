"""Observations of modules of LLVM's IR."""
