"""Programs of the environment `llvm`: whole modules, or single functions of them, as unoptimised bitcode."""
