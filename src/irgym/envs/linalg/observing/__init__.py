"""What policies, Gymnasium environments and cost models see of a scheduled program."""
