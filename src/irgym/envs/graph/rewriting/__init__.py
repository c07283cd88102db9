"""The engine of rewrite rules: their language, matching, application and verification."""
