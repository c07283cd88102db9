"""LLVM's IR as text."""
