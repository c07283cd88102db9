"""Modules of programs: what is prepared, and what is refused."""

import hashlib
import os
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from irgym.base.errors import BackendError, IrgymError, ProgramError
from irgym.core.cost import Call
from irgym.envs.llvm.programs.sources import Sources
from irgym.envs.llvm.programs.uris import parse_uri
from irgym.llvmir.programs.clang import preprocessed
from irgym.llvmir.programs.files import kernels
from irgym.llvmir.programs.packages.pinned import Package
from irgym.measure.isolation.child import Child
from irgym.measure.replies import answered

CODE = """
static int square(int x) { return x * x; }
int unused(int x) { return square(x) + 1; }
int level, other = 1;
int twice(int *p, int n) { int s = level; for (int i = 0; i < n; i++) s += square(p[i]); return s; }
"""

TRIPLE = 'target triple = "x86_64-unknown-linux-gnu"\n'

IR = """
define i32 @f(i32 %x) #0 {
  %y = add i32 %x, 1
  ret i32 %y
}
define i32 @h() {
  ret i32 0
}
@g = alias i32 (i32), ptr @f
attributes #0 = { noinline optnone }
"""


@pytest.fixture(scope="module")
def sources() -> Iterator[Sources]:
    with Sources() as opened:
        yield opened


@pytest.fixture(scope="module")
def child() -> Iterator[Child]:
    with Child() as opened:
        yield opened


def asked(child: Child, function: str, *arguments: Any) -> Any:
    return answered(child, Call(f"llvm_texts:{function}", arguments), "a module", "LLVM")


def written(folder: Path, name: str, content: str | bytes) -> Path:
    file = folder / name
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return file


@pytest.mark.parametrize("kernel", kernels())
def test_kernels_shrink_to_less_than_half(sources: Sources, kernel: str):
    before, after = sources.sizes(sources.module(parse_uri(f"llvm://kernels/{kernel}")))
    assert 900 < before < 1500 and 300 < after < before / 2


def test_c_is_compiled_for_size_or_for_speed(sources: Sources, child: Child, tmp_path: Path):
    program = parse_uri(f"llvm:{written(tmp_path, 'code.c', CODE)}")
    size, speed = (asked(child, "text_of", str(sources.module(program, aim))) for aim in ("size", "speed"))
    assert "minsize" in size and "optsize" in size
    assert "minsize" not in speed and "optsize" not in speed
    for text in (size, speed):
        assert "target-features" not in text and '"target-cpu"="x86-64"' in text
        assert str(tmp_path) not in text and 'source_filename = "code.c"' in text
        assert "alloca" in text and "optnone" not in text and "%s = " not in text
    with pytest.raises(IrgymError, match="there is no aim 'beauty': choose among size, speed"):
        sources.module(program, "beauty")
    with pytest.raises(IrgymError, match="llvm has no target 'vax': choose among x86-64, "):
        sources.module(program, target="vax")


def test_a_function_with_what_it_needs(sources: Sources, child: Child, tmp_path: Path):
    file = written(tmp_path, "code.c", CODE)
    text = asked(child, "text_of", str(sources.module(parse_uri(f"llvm:{file}#twice"))))
    assert "define i32 @twice" in text and "define internal i32 @square" in text
    assert "@level = global i32 0" in text  # code elsewhere may write it
    assert "unused" not in text and "@other" not in text
    text = asked(child, "text_of", str(sources.module(parse_uri(f"llvm:{file}#square"))))
    assert "i32 @square(" in text and "internal" not in text and "@twice" not in text


def test_a_function_of_a_kernel(sources: Sources):
    whole, part = (
        sources.sizes(sources.module(parse_uri(f"llvm://kernels/sorting.c{end}"))) for end in ("", "#sift")
    )
    assert part[0] < whole[0] and part[1] < whole[1]


@pytest.mark.parametrize("triple", [TRIPLE, ""])
def test_ir_as_text_and_as_bitcode(sources: Sources, child: Child, tmp_path: Path, triple: str):
    files = [written(tmp_path, "code.ll", triple + IR)]
    if triple:
        asked(child, "write_bitcode", triple + IR, str(tmp_path / "code.bc"))
        files.append(tmp_path / "code.bc")
    for file in files:
        module = sources.module(parse_uri(f"llvm:{file}"))
        text = asked(child, "text_of", str(module))
        assert "noinline" in text and "optnone" not in text and "x86_64-unknown-linux-gnu" in text
        assert "%y" not in text and "minsize" not in text
        assert sources.sizes(module)[0] == 3
        alone = asked(child, "text_of", str(sources.module(parse_uri(f"llvm:{file}#g"))))
        assert "define i32 @f" in alone and "@h" not in alone


def test_inline_assembly_is_allowed(sources: Sources, tmp_path: Path):
    file = written(tmp_path, "code.c", 'int f(int x) { __asm__("nop" : "+r"(x)); return x; }\n')
    assert sources.sizes(sources.module(parse_uri(f"llvm:{file}")))[0] > 2


def test_a_header_that_changes_makes_another_module(sources: Sources, tmp_path: Path):
    file = written(tmp_path, "code.c", '#include "own.h"\nint f(int x) { return x * FACTOR; }\n')
    modules: list[Path] = []
    for factor in (3, 4, 3):
        written(tmp_path, "own.h", f"#define FACTOR {factor}\n")
        modules.append(sources.module(parse_uri(f"llvm:{file}")))
    assert modules[0] == modules[2] != modules[1]


def test_any_name_of_a_file(sources: Sources, tmp_path: Path):
    file = written(tmp_path, "its # é.c", CODE)
    assert sources.sizes(sources.module(parse_uri(f"llvm:{file}")))[0] > 20


def test_macros_see_what_code_is_optimised_for(sources: Sources, tmp_path: Path):
    code = "#ifdef __OPTIMIZE_SIZE__\nint f(void) { return 1; }\n#endif\nint g(void) { return 2; }\n"
    program = parse_uri(f"llvm:{written(tmp_path, 'code.c', code)}")
    small, quick = (sources.sizes(sources.module(program, aim)) for aim in ("size", "speed"))
    assert small > quick


@pytest.mark.parametrize(
    ("name", "content", "part", "said"),
    [
        ("a.c", "int f( {", "", r"clang cannot compile a\.c: line 1:8: error: expected"),
        ("a.c", '#include "none.h"\n', "", r"'none\.h' file not found: name the header's folder"),
        ("a.c", "", "", r"a\.c defines no function: choose a file with code"),
        ("a.c", "int f(int);\nint level = 1;\n", "", r"a\.c defines no function"),
        ("a.c", CODE, "#thrice", r"defines no function 'thrice': choose among square, twice, unused"),
        ("a.c", b"\x7fELF\x02\x01\x01\x00\x00\x00", "", r"clang cannot compile a\.c"),
        ("a.ll", "", "", r"a\.ll defines no function"),
        ("a.ll", "define i32 @f( {", "", r"LLVM 23\S* cannot read a\.ll \(.*expected"),
        ("a.ll", "define void @f() {\n  frobnicate i32 1\n  ret void\n}\n", "", r"cannot read a\.ll"),
        ("a.ll", b"\xff\xfe\x00", "", r"a\.ll is neither LLVM's IR as text nor bitcode"),
        (
            "a.ll",
            TRIPLE + "define void @f() {\n  %x = add i32 %x, 1\n  ret void\n}\n",
            "",
            r"invalid \(Only PHI",
        ),
        (
            "a.ll",
            'target triple = "riscv64-linux"\n' + IR,
            "",
            r"the module is for riscv64-linux, and this LLVM makes code for X86",
        ),
        (
            "a.ll",
            IR.replace("noinline", 'noinline "target-cpu"="no"'),
            "",
            r"LLVM crashed on it .*'no' is not a recognized",
        ),
        ("a.bc", b"BC\xc0\xdeno more", "", r"LLVM 23\S* cannot read a\.bc"),
        ("a.bc", b"\xde\xc0\x17\x0b" + bytes(40), "", r"cannot read a\.bc"),
        (
            "a.bc",
            b"\x7fELF\x02\x01\x01" + b"\xff" * 90,
            "",
            r"a\.bc is neither LLVM's IR as text nor bitcode",
        ),
    ],
)
def test_files_that_are_no_programs_are_refused(
    sources: Sources, tmp_path: Path, name: str, content: str | bytes, part: str, said: str
):
    file = written(tmp_path, name, content)
    with pytest.raises(ProgramError, match=said) as caught:
        sources.module(parse_uri(f"llvm:{file}{part}"))
    assert "\n" not in str(caught.value)


def test_bitcode_of_a_newer_llvm_and_damaged_bitcode(sources: Sources, child: Child, tmp_path: Path):
    file = tmp_path / "code.bc"
    asked(child, "write_bitcode", TRIPLE + IR, str(file))
    content = file.read_bytes()
    assert b"LLVM" not in content  # the name of the producer is packed in six bits a character
    for place in range(8, len(content), 97):
        damaged = bytearray(content)
        damaged[place] ^= 0x55
        file.write_bytes(bytes(damaged))
        try:
            module = sources.module(parse_uri(f"llvm:{file}"))
        except ProgramError as error:
            assert "code.bc" in str(error) and "\n" not in str(error)
        else:
            assert sources.sizes(module)[0] > 0


def test_a_large_file_is_refused_at_once(sources: Sources, tmp_path: Path):
    for name in ("large.c", "large.ll", "large.bc"):
        with (tmp_path / name).open("wb") as file:
            file.truncate(100 << 20)
        with pytest.raises(ProgramError, match="has 100 MiB, and at most 64 MiB are read"):
            sources.module(parse_uri(f"llvm:{tmp_path / name}"))


def test_a_text_that_expands_without_end_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("irgym.envs.llvm.programs.sources.SECONDS", 3.0)
    lines = ["#define A0 x+x+x+x"]
    lines += [f"#define A{k} A{k - 1}+A{k - 1}+A{k - 1}+A{k - 1}" for k in range(1, 30)]
    file = written(tmp_path, "bomb.c", "\n".join([*lines, "int f(int x) { return A29; }"]))
    with Sources() as opened, pytest.raises(ProgramError, match=r"bomb\.c"):
        opened.module(parse_uri(f"llvm:{file}"))


def test_csmith(sources: Sources, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    program = parse_uri("llvm://csmith?seed=12")
    with pytest.raises(BackendError, match="csmith, which is not installed: run apt install csmith"):
        sources.module(program)
    (tmp_path / "bin").mkdir()
    script = written(
        tmp_path,
        "bin/csmith",
        '#!/bin/sh\n[ "$1" = --version ] && echo csmith 2 && exit\n'
        '[ "$2" = 13 ] && exit 3\n'
        'echo "#include \\"csmith.h\\""; echo "int main(void) { return CHECK + $2; }"\n',
    )
    script.chmod(0o755)
    with pytest.raises(BackendError, match=r"header csmith\.h is not installed"):
        sources.module(program)
    (tmp_path / "include/csmith").mkdir(parents=True)
    written(tmp_path, "include/csmith/csmith.h", "#define CHECK 5\n")
    monkeypatch.setenv("IRGYM_CACHE_DIR", str(tmp_path / "cache"))
    assert sources.sizes(sources.module(program))[1] == 1
    with pytest.raises(ProgramError, match=r"csmith --seed 13 fails \(exit status 3\)"):
        sources.module(parse_uri("llvm://csmith?seed=13"))


def test_a_function_of_a_package(
    sources: Sources, child: Child, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("IRGYM_CACHE_DIR", str(tmp_path / "cache"))
    folder = tmp_path / "tiny-1.0"
    (folder / "include").mkdir(parents=True)
    written(folder, "tiny.c", '#include "most.h"\n' + CODE + "int most(int x) { return x * MOST * LEAST; }\n")
    written(folder, "include/most.h", "#define MOST 3\n")
    archive = tmp_path / "tiny-1.0.tar.gz"
    with tarfile.open(archive, "w:gz") as made:
        made.add(folder, folder.name)
    content = hashlib.sha256(archive.read_bytes()).hexdigest()
    package = Package("tiny", "1.0", "train", archive.as_uri(), content, ("*.c",), ("include",), ("LEAST=7",))
    monkeypatch.setattr("irgym.llvmir.programs.files.packages", lambda: {"tiny": package})
    monkeypatch.setattr("irgym.envs.llvm.programs.uris.modules", lambda: {"tiny/tiny.c": None})
    whole, part = (
        asked(child, "text_of", str(sources.module(parse_uri(f"llvm://packages/tiny/tiny.c{end}"))))
        for end in ("", "#most")
    )
    assert "@twice" in whole and "@most" in whole
    assert "i32 @most(" in part and "@twice" not in part and ", 3" in part and ", 7" in part


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(sources: Sources, tmp_path: Path):
    file = written(tmp_path, "code.c", CODE)
    file.chmod(0)
    with pytest.raises(ProgramError, match="check the path and its permissions"):
        sources.module(parse_uri(f"llvm:{file}"))


def test_c_that_expands_without_end_is_refused_in_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr("irgym.llvmir.programs.included.SECONDS", 1.0)
    macros = "".join(f"#define A{number} A{number - 1} + A{number - 1}\n" for number in range(1, 40))
    bomb = written(tmp_path, "bomb.c", f"#define A0 x\n{macros}int f(int x) {{ return A39; }}\n")
    with Sources() as opened, pytest.raises(ProgramError) as caught:
        opened.module(parse_uri(f"llvm:{bomb}"))
    assert "is too much for clang's preprocessor" in str(caught.value) and "a macro" in str(caught.value)


def test_c_on_which_clang_crashes_is_refused(sources: Sources, tmp_path: Path):
    deep = written(tmp_path, "deep.c", f"int f(int x) {{ return {'- ' * 300_000}x; }}")
    with pytest.raises(ProgramError, match=r"clang crashes on deep\.c: choose a smaller or another file"):
        sources.module(parse_uri(f"llvm:{deep}"))


def test_large_preprocessed_texts_are_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr("irgym.llvmir.programs.clang.LARGEST", 1 << 20)
    file = written(tmp_path, "large.c", "int x;\n" + "int level;" * 200_000)
    with pytest.raises(ProgramError, match=r"large\.c has 1 MiB with all that it includes"):
        preprocessed(file, "x86-64")


def test_ir_on_which_llvm_crashes_is_refused_in_one_sentence(sources: Sources, tmp_path: Path):
    deep = (
        f"@g = global {'{' * 100_000}i8{'}' * 100_000} zeroinitializer\ndefine void @f() {{\n ret void\n}}\n"
    )
    file = written(tmp_path, "deep.ll", deep)
    with pytest.raises(ProgramError) as caught:
        sources.module(parse_uri(f"llvm:{file}"))
    assert str(caught.value).endswith(
        "crashed on it (killed by SIGSEGV): choose a smaller or another program"
    )
