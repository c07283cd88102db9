"""Functions and torch modules of users: compared with, and replaced by, the programs made of them."""
