"""Concepts that environments, searches and agents share: tasks, actions, schedules, costs, rewards."""
