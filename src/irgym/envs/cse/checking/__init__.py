"""Checks that a choice preserves behaviour: proofs, and runs in random worlds before and after."""
