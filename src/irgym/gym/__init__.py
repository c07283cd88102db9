"""The Gymnasium view of tasks, and its registration."""
