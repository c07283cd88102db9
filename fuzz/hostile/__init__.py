"""Files that are made to do harm, and the watchdog under which irgym opens them."""
