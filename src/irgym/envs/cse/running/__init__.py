"""Whether a choice computes the same: functions run on made-up arguments, in a process of their own."""
