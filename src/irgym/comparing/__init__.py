"""Methods side by side on the same programs, with intervals."""
