"""Files, errors, values, signals: what any program needs. It imports nothing else of irgym."""
