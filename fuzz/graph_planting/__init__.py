"""Small wrong models, each beside the right one."""
