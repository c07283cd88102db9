"""Programs in LLVM's IR: where they come from, their text, and their execution in random worlds."""
