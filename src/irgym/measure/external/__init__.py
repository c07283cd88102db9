"""External processes that answer requests line by line, such as compilers with a server mode."""
