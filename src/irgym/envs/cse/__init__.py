"""Selection of common subexpressions to share, on LLVM's IR and in the .NET JIT."""
