"""Where objects are in the memory of runs."""

REGION_BITS = 36
"""Addresses with the same upper bits belong to one object: 32 GiB on each side of its middle."""

MIDDLE = 1 << (REGION_BITS - 1)
"""Where pointers to an object point, from the beginning of its region."""

WORLD, GLOBALS, CODE, STACK, HEAP, END = (
    place << REGION_BITS for place in (1, 1 << 11, 1 << 15, 1 << 16, 1 << 17, 1 << 18)
)
"""Where there are objects from outside, globals, functions, variables, allocations, and nothing more."""
