"""Programs that use packages built on JAX, in the style of their users."""
