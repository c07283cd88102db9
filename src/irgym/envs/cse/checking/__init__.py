"""Whether a choice computes the same: functions run in made-up worlds, in processes of their own."""
