"""Learning from searches: demonstrations, behavioural cloning, expert iteration."""
