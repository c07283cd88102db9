"""Files that are programs, and the packages that each environment has."""

from pathlib import Path

import pytest

from irgym.llvmir.programs.files import SourceFile, is_program, kernels, listed
from irgym.llvmir.programs.packages.pinned import packages, packages_of


@pytest.mark.parametrize(
    ("name", "content", "is_one"),
    [
        ("a.c", b"int f(void);", True),
        ("a.C", b"", True),
        ("a.ll", b"define i32 @f() {\n", True),
        ("a.ll", b"declare i32 @f()\n", False),
        ("a.bc", b"BC\xc0\xde....", True),
        ("a.bc", b"\xde\xc0\x17\x0b....", True),
        ("a.bc", b"1 + 1\n", False),
        ("a.h", b"int f(void);", False),
    ],
)
def test_files_are_told_by_name_and_content(tmp_path: Path, name: str, content: bytes, is_one: bool):
    (tmp_path / name).write_bytes(content)
    assert is_program(tmp_path / name) is is_one


def test_c_is_compiled():
    assert SourceFile(Path("a.c")).compiled and not SourceFile(Path("a.ll")).compiled


def test_long_lists_are_cut():
    assert listed(["a", "b"]) == "a, b"
    assert listed([str(number) for number in range(20)]).endswith("10, 11 and 8 more")


def test_kernels_are_c():
    assert len(kernels()) == 5 and all(name.endswith(".c") for name in kernels())


def test_packages_of_one_environment_are_hidden_from_the_other():
    cse, llvm = (set(packages_of(name)) for name in ("cse", "llvm"))
    assert cse < llvm == set(packages())
    assert {packages()[name].only for name in llvm - cse} == {"llvm"}
