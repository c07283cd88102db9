"""Small wrong models, each with the right one."""
