"""The searches: one file each. A strategy proposes schedules to a session."""
