"""How often Python looks for garbage, in processes that are irgym's alone."""

import gc

EVERY = 50_000
"""Objects made, less those freed, after which Python looks for garbage among them; 700 by default."""


def collect_seldom() -> None:
    """Look for garbage less often.

    Models are trees of many small objects that all stay. By default Python takes 40 % of the time of reading
    a graph of 20,000 operators to look for garbage among them.
    """
    gc.set_threshold(EVERY)
