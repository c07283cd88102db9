"""The engine of rewrite rules: language, matching, sites, replacements and verification."""
