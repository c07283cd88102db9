"""From passes to modules, object code and files."""
