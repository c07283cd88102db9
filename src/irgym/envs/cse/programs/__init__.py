"""Programs of the environment `cse`: C and LLVM's IR, and their preparation for scoring."""
