"""The results of the original model, and the rounding errors allowed in those of rewritten models."""
