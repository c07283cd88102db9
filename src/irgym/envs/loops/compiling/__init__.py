"""Code generators. `lower` turns a nest into a `Kernel`; each back end emits a kernel in its own language."""
