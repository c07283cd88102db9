"""Operations, what transformations do to them, and how schedules are written."""
