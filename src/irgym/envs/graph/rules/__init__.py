"""Rewrite rules: their language, their matching, and the rules themselves."""
