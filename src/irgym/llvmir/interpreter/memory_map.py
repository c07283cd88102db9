"""The address space of runs."""

REGION_BITS = 36
"""Bits of an address within an object's region: 32 GiB on each side of the object's beginning."""

MIDDLE = 1 << (REGION_BITS - 1)
"""Offset of an object in its region."""

WORLD, OUTSIDE = (place << REGION_BITS for place in (1, 1 << 11))
"""Begin and end of the area of external objects."""

_OURS = 0xA4 << 16

GLOBALS, CODE, STACK, HEAP, SOLE, LAST = (
    _OURS + place << REGION_BITS for place in (1 << 11, 1 << 15, 1 << 16, 1 << 17, 1 << 18, 1 << 19)
)
"""Begin of the areas of globals, functions, variables, allocations, and objects from outside the module to
which only one pointer points, and the end of the last. Their upper bits are such that small numbers side by
side, or text, are no addresses there: whoever can read an address can reach the object."""
