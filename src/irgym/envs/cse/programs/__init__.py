"""Programs of the `cse` environment: C and LLVM's IR, brought into the form that is scored."""
