"""Which common subexpressions to share: LLVM's IR, and the .NET JIT."""
