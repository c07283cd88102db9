"""Proofs that what is shared computes the same: by comparing expressions, and by z3 where flags differ."""
