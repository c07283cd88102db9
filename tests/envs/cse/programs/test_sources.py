"""Files as programs: C, IR, and files that are neither."""

from pathlib import Path

import pytest

from irgym.base.errors import ProgramError
from irgym.core.catalogue import locate
from irgym.envs.cse.environment import CSE

CODE = "int twice(int *p, int n) { int s = p[n * 3]; if (s > 1) s += p[n * 3] * n; return s; }\n"


def test_c_with_a_header_beside_it(tmp_path: Path):
    (tmp_path / "own.h").write_text("#define FACTOR 3\n")
    file = tmp_path / "code.c"
    file.write_text('#include <stdint.h>\n#include "own.h"\n' + CODE.replace("3", "FACTOR"))
    assert CSE.task(f"cse:{file}#twice").names
    assert locate(file)[1] == f"cse:{file}"


PART = """
#include "part.h"
int f(int *p, int n) { int s = PART; if (n > s) s += p[n] / 7; return s + p[n] / 7; }
"""


def test_a_header_that_changes_makes_another_program(tmp_path: Path):
    file, header = tmp_path / "code.c", tmp_path / "part.h"
    file.write_text(PART)
    texts: list[str] = []
    for part in ("0", "p[0] / p[1]", "0"):
        header.write_text(f"#define PART {part}\n")
        task = CSE.task(f"cse:{file}#f", target="x86-64")
        texts.append(task.text(task.initial()))
    assert texts[0] == texts[2] != texts[1]


def test_folders_of_headers_are_named_as_for_clang(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    file, folder = tmp_path / "code.c", tmp_path / "include"
    folder.mkdir()
    file.write_text(PART)
    (folder / "part.h").write_text("#define PART 0\n")
    with pytest.raises(ProgramError, match=r"'part.h' file not found: name the header's folder in .* CPATH"):
        CSE.task(f"cse:{file}#f")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CPATH", "include")
    task = CSE.task(f"cse:{file}#f")
    assert "sdiv" in task.text(task.initial())


def test_ir_as_text_and_as_bitcode(tmp_path: Path):
    from llvmlite import binding as llvm

    task = CSE.task("cse://kernels/sorting.c#quick_sort", target="x86-64")
    [text] = task.export(task.initial(), tmp_path / "code.ll")
    bitcode = tmp_path / "code.bc"
    bitcode.write_bytes(llvm.parse_assembly(text.read_text()).as_bitcode())
    for file in (text, bitcode):
        assert locate(file)[1] == f"cse:{file}"
        assert CSE.task(f"cse:{file}#quick_sort", target="x86-64").names == task.names


@pytest.mark.parametrize(
    ("name", "content", "uri", "said"),
    [
        ("a.c", b"int f( {", "#f", r"clang cannot compile a\.c: line 1:8: error: expected"),
        ("a.c", CODE.encode(), "#thrice", r"defines no function 'thrice': choose among twice"),
        ("a.c", CODE.encode(), "", r"names no function: write one after #, of twice"),
        ("a.c", b"", "#f", r"choose among none: it defines no function"),
        ("a.ll", b"define i32 @f( {", "#f", r"LLVM 22 cannot read a\.ll \(.*expected"),
        ("a.ll", b"\xff\xfe\x00", "#f", r"a\.ll is neither LLVM's IR as text nor bitcode"),
        ("a.bc", b"BC\xc0\xdeno more", "#f", r"LLVM 22 cannot read a\.bc"),
        ("a.txt", b"", "#f", r"cse reads no such file; name it one of \*\.c, \*\.ll, \*\.bc"),
    ],
)
def test_files_that_are_no_programs_are_refused(
    tmp_path: Path, name: str, content: bytes, uri: str, said: str
):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ProgramError, match=said):
        CSE.task(f"cse:{tmp_path / name}{uri}")


@pytest.mark.parametrize(
    ("uri", "said"),
    [
        ("cse://kernels/nothing.c#f", "names none of the kernels: choose one of bytes.c, geometry.c"),
        ("cse://kernels", "is malformed"),
        ("cse://kernel/sorting.c#f", "there is no program family 'kernel' in cse"),
        ("cse:missing.c#f", "there is no such file"),
        ("cse:missing.c#", "names no part of the file"),
    ],
)
def test_uris_that_name_nothing_are_refused(uri: str, said: str):
    with pytest.raises(ProgramError, match=said):
        CSE.task(uri)


def test_a_function_without_candidates_is_a_program_too(tmp_path: Path):
    file = tmp_path / "code.c"
    file.write_text("int same(int x) { return x; }\n")
    task = CSE.task(f"cse:{file}#same")
    assert not task.names and task.describe(task.initial()).startswith("nothing is computed twice")
