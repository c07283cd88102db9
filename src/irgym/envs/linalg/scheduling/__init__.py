"""Operations, their transformations, and schedules as scripts, texts and random sketches."""
