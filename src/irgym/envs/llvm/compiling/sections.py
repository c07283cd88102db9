"""Sizes of machine code in object files."""

import struct

from irgym.base.errors import ProgramError

_HEADER = struct.Struct("<16s2HI3QI6H")
_SECTION = struct.Struct("<2I4Q2I2Q")
_EXECUTABLE = 0x4
"""The flag SHF_EXECINSTR of the ELF format."""


def text_bytes(content: bytes) -> int:
    """Return the bytes of machine code in an ELF file: the sizes of its executable sections together.

    Raises:
        ProgramError: It is no 64-bit ELF file.
    """
    if content[:5] != b"\x7fELF\x02":
        raise ProgramError(
            "code is measured in 64-bit ELF files alone: compile the program for such a target, as x86-64 "
            "Linux is, or choose the objective instructions"
        )
    fields = _HEADER.unpack_from(content)
    offset, size, count = fields[6], fields[11], fields[12]
    total = 0
    for place in range(count):
        section = _SECTION.unpack_from(content, offset + place * size)
        if section[2] & _EXECUTABLE:
            total += section[5]
    return total
