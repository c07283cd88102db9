"""Relocatable ELF objects around machine code that refers to nothing outside itself.

The layout is that of the System V ABI: the generic chapters 4 and 5 and the x86-64 supplement.
"""

import struct
from dataclasses import dataclass

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")

_IDENTIFICATION = b"\x7fELF\x02\x01\x01" + bytes(9)
"""64 bits, little endian, version 1, System V."""

_RELOCATABLE, _X86_64, _VERSION = 1, 62, 1
_PROGBITS, _SYMTAB, _STRTAB = 1, 2, 3
_ALLOCATED_AND_EXECUTABLE = 0x2 | 0x4
_GLOBAL_FUNCTION = 1 << 4 | 2


@dataclass(frozen=True)
class _Section:
    """A section: its name, its content, and the fields of its header that are not worked out."""

    name: str
    kind: int
    content: bytes = b""
    flags: int = 0
    link: int = 0
    info: int = 0
    alignment: int = 1
    entry_size: int = 0


def relocatable(code: bytes, name: str, start: int) -> bytes:
    """Return an object file for x86-64 with one function.

    Args:
        code: Position-independent machine code; it will be aligned to 64 bytes.
        name: Name of the function.
        start: Where in the code the function begins.
    """
    strings = b"\0" + name.encode() + b"\0"
    symbols = bytes(_SYMBOL.size) + _SYMBOL.pack(1, _GLOBAL_FUNCTION, 0, 1, start, len(code) - start)
    return _file(
        [
            _Section("", 0, alignment=0),
            _Section(".text", _PROGBITS, code, _ALLOCATED_AND_EXECUTABLE, alignment=64),
            # Linked to the strings of its names; the first global symbol is number 1.
            _Section(".symtab", _SYMTAB, symbols, link=3, info=1, alignment=8, entry_size=_SYMBOL.size),
            _Section(".strtab", _STRTAB, strings),
            # Tells the linker that the stack need not be executable.
            _Section(".note.GNU-stack", _PROGBITS),
        ]
    )


def _file(sections: list[_Section]) -> bytes:
    """Lay out a file: header, contents, section headers; a section of all their names goes last."""
    names = [*(section.name for section in sections), ".shstrtab"]
    table = b"".join(name.encode() + b"\0" for name in names)
    sections = [*sections, _Section(".shstrtab", _STRTAB, table)]
    body = bytearray(_HEADER.size)
    headers = b""
    name_at = 0
    for section in sections:
        body += bytes(-len(body) % max(section.alignment, 1))
        place = len(body) if section.kind else 0
        headers += _SECTION.pack(
            name_at,
            section.kind,
            section.flags,
            0,
            place,
            len(section.content),
            section.link,
            section.info,
            section.alignment,
            section.entry_size,
        )
        body += section.content
        name_at += len(section.name) + 1
    body += bytes(-len(body) % 8)
    body[: _HEADER.size] = _HEADER.pack(
        _IDENTIFICATION,
        _RELOCATABLE,
        _X86_64,
        _VERSION,
        0,
        0,
        len(body),
        0,
        _HEADER.size,
        0,
        0,
        _SECTION.size,
        len(sections),
        len(sections) - 1,
    )
    return bytes(body) + headers
