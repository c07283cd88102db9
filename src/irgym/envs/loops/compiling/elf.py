"""Relocatable ELF objects of machine code without external references except a workspace.

The layout is that of the System V ABI: the generic chapters 4 and 5 and the x86-64 supplement. The
workspace is thread-local: its address comes from the function `__tls_get_addr` of the C library, in the form
that linkers recognise (Drepper, ELF Handling For Thread-Local Storage, section 4.1.6).
"""

import struct
from dataclasses import dataclass

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQq")

_IDENTIFICATION = b"\x7fELF\x02\x01\x01" + bytes(9)
"""64 bits, little endian, version 1, System V."""

_RELOCATABLE, _X86_64, _VERSION = 1, 62, 1
_PROGBITS, _SYMTAB, _STRTAB, _RELA, _NOBITS = 1, 2, 3, 4, 8
_ALLOCATED_AND_EXECUTABLE = 0x2 | 0x4
_THREAD_LOCAL = 0x1 | 0x2 | 0x400
_OF_SECTION = 0x40
_GLOBAL_FUNCTION = 1 << 4 | 2
_GLOBAL_UNKNOWN = 1 << 4
_LOCAL_THREAD_LOCAL = 6
_TLSGD, _PLT32 = 19, 4
"""Types of relocations: the operand of `__tls_get_addr`, and a call."""

_GET_ADDRESS = b"\x66\x48\x8d\x3d" + bytes(4) + b"\x66\x66\x48\xe8" + bytes(4)
"""`lea rdi, [rip + x@tlsgd]; call __tls_get_addr@plt`, with the prefixes that linkers expect."""

_OPERANDS = (4, 12)
"""Offsets of the two relocations in it."""


@dataclass(frozen=True)
class _Section:
    """A section: name, content (or size if it has none), and the other fields of its header."""

    name: str
    kind: int
    content: bytes = b""
    size: int = 0
    flags: int = 0
    link: int = 0
    info: int = 0
    alignment: int = 1
    entry_size: int = 0


def relocatable(code: bytes, name: str, start: int, workspace: tuple[int, int] | None = None) -> bytes:
    """Return an object file for x86-64 with one function.

    Args:
        code: Position-independent machine code, to be aligned to 64 bytes.
        name: Name of the function.
        start: Offset of the function in the code.
        workspace: Offset of `workspace_address` in the code, and bytes of the workspace; None for none.
    """
    strings = b"\0" + name.encode() + b"\0__tls_get_addr\0"
    local = _SYMBOL.pack(0, _LOCAL_THREAD_LOCAL, 0, 3, 0, workspace[1]) if workspace else b""
    symbols = bytes(_SYMBOL.size) + local
    symbols += _SYMBOL.pack(1, _GLOBAL_FUNCTION, 0, 1, start, len(code) - start)
    first_global = 2 if workspace else 1
    extra: list[_Section] = []
    if workspace:
        symbols += _SYMBOL.pack(2 + len(name.encode()), _GLOBAL_UNKNOWN, 0, 0, 0, 0)
        # Symbol 1 is the workspace, symbol 3 `__tls_get_addr`.
        relocations = b"".join(
            _RELOCATION.pack(workspace[0] + operand, symbol << 32 | kind, -4)
            for operand, symbol, kind in zip(_OPERANDS, (1, 3), (_TLSGD, _PLT32), strict=True)
        )
        extra = [
            # For section 1, with the symbols of section 4.
            _Section(".rela.text", _RELA, relocations, 0, _OF_SECTION, 4, 1, 8, _RELOCATION.size),
            _Section(".tbss", _NOBITS, size=workspace[1], flags=_THREAD_LOCAL, alignment=64),
        ]
    strings_at = 3 + len(extra)
    return _file(
        [
            _Section("", 0, alignment=0),
            _Section(".text", _PROGBITS, code, flags=_ALLOCATED_AND_EXECUTABLE, alignment=64),
            *extra,
            # Linked to the section with its names.
            _Section(
                ".symtab",
                _SYMTAB,
                symbols,
                link=strings_at,
                info=first_global,
                alignment=8,
                entry_size=_SYMBOL.size,
            ),
            _Section(".strtab", _STRTAB, strings),
            # Tells the linker that the stack need not be executable.
            _Section(".note.GNU-stack", _PROGBITS),
        ]
    )


def workspace_address() -> bytes:
    """Return code that leaves the address of the thread's workspace in rax; the stack must be aligned.

    It calls a function, so caller-saved registers are lost.
    """
    return _GET_ADDRESS


def _file(sections: list[_Section]) -> bytes:
    """Lay out a file: header, contents, section headers; a section with the names comes last."""
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
            len(section.content) or section.size,
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
