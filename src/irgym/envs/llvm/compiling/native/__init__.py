"""C that walks through modules, built on first use."""
