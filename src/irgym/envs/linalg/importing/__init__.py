"""From files and torch modules to programs, and from programs to what their operations are."""
