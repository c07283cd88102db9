"""What operators cost: measured once each, and estimated."""
