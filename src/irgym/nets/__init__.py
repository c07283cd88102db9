"""Encoders, action heads, and the policies made of them. Needs the extra `learn` (torch)."""
