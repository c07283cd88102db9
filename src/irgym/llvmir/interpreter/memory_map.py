"""The address space of runs."""

REGION_BITS = 36
"""Bits of an address within an object's region: 32 GiB on each side of the object's beginning."""

MIDDLE = 1 << (REGION_BITS - 1)
"""Offset of an object in its region."""

WORLD, GLOBALS, CODE, STACK, HEAP, END = (
    place << REGION_BITS for place in (1, 1 << 11, 1 << 15, 1 << 16, 1 << 17, 1 << 18)
)
"""Begin of the areas of external objects, globals, functions, variables and allocations, and their end."""

SOLE, LAST = END, 1 << (19 + REGION_BITS)
"""Begin and end of the area of objects from outside the module to which only one pointer points."""
