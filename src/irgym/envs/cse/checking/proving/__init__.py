"""Proofs that shared results are equal: by comparing expressions, and by z3 where flags differ."""
