import shutil
import subprocess
from pathlib import Path

import pytest

from irgym.envs.loops.compiling import elf


@pytest.mark.skipif(shutil.which("readelf") is None, reason="readelf is not installed")
def test_readelf_reads_what_was_written(tmp_path: Path) -> None:
    file = tmp_path / "answer.o"
    file.write_bytes(elf.relocatable(b"\x90\x90\xb8\x2a\x00\x00\x00\xc3", "answer", 2))
    done = subprocess.run(["readelf", "-aW", file], capture_output=True, text=True, check=True)
    assert not done.stderr
    assert "REL (Relocatable file)" in done.stdout
    symbol = next(line for line in done.stdout.splitlines() if line.endswith(" answer"))
    assert symbol.split()[1:7] == ["0000000000000002", "6", "FUNC", "GLOBAL", "DEFAULT", "1"]
    assert ".note.GNU-stack" in done.stdout


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler is installed")
def test_the_function_links_and_runs(tmp_path: Path) -> None:
    (tmp_path / "answer.o").write_bytes(elf.relocatable(b"\x90\x90\xb8\x2a\x00\x00\x00\xc3", "answer", 2))
    (tmp_path / "main.c").write_text("int answer(void);\nint main(void) { return answer(); }\n")
    command = ["cc", "-Wl,--fatal-warnings", "main.c", "answer.o", "-o", "main"]
    subprocess.run(command, cwd=tmp_path, check=True)
    assert subprocess.run([tmp_path / "main"], check=False).returncode == 42
