"""What every environment, search and agent shares: tasks, actions, schedules, costs, rewards, programs."""
