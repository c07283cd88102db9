"""The JIT CSE gymnasium's own environment, `irgym/JitCse-v0`, on LLVM or on the .NET JIT."""
