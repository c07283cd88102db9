"""The cost of a choice: assembly by LLVM in a child process, and its static score. Export of choices."""
