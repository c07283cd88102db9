"""Programs that are written with packages around JAX, as their users write them."""
