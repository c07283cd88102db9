"""Import of files and torch modules as programs, and descriptions of programs' operations."""
