"""What `graph_fuzz.py` checks graphs by: slow, and written apart from what it checks."""
