"""What a choice costs: assembly by LLVM, and a static score of it. LLVM runs in a child process."""
