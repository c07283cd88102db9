"""The environment of the JIT CSE gymnasium, `irgym/JitCse-v0`, on LLVM or on the .NET JIT."""
