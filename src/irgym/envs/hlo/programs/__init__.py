"""Programs of the `hlo` environment: models in JAX and files, their URIs, and data sets of them."""
