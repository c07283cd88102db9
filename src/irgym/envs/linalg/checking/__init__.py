"""What programs are checked on, and what rounding may do to their results."""
