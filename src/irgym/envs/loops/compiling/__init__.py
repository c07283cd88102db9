"""Code generators: `lower` turns a nest into a `Kernel`, for which each back end emits code."""
