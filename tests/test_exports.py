"""The page on exported files: its commands write them, and its programs use them where there is no irgym."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from irgym.cli.main import main

PAGE = Path(__file__).parent.parent / "docs" / "exports.md"
SECTIONS = dict(re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", PAGE.read_text(), re.MULTILINE | re.DOTALL))
BLOCK = re.compile(r"^```(\w+)(?: title=\"(.*?)\")?\n(.*?)^```", re.MULTILINE | re.DOTALL)


def without_irgym(program: str, folder: Path) -> None:
    """Run a program in Python with the libraries that are installed here, but for irgym."""
    base = Path(getattr(sys, "_base_executable", sys.executable))
    blocked = "import importlib.util; assert importlib.util.find_spec('irgym') is None\n"
    environment = {**os.environ, "PYTHONPATH": sysconfig.get_path("purelib")}
    words = [base, "-P", "-c", blocked + program]
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def typed(line: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Do what a line of the shell does; searches are short."""
    words = shlex.split(line)
    if words[0] == "irgym":
        short = re.sub(r"--seconds \d+", "--evaluations 6", line)
        monkeypatch.chdir(folder)
        main(shlex.split(short)[1:])
    else:
        done = subprocess.run(["sh", "-c", line], cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("section", SECTIONS)
def test_a_section_of_the_page(
    section: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
):
    if "hlo://" in SECTIONS[section]:
        request.getfixturevalue("engine")
    if shutil.which("cc") is None:
        pytest.skip("needs a C compiler: none is installed")
    blocks = BLOCK.findall(SECTIONS[section])
    assert blocks
    for language, title, text in blocks:
        if title:
            (tmp_path / title).write_text(text)
        elif language == "python":
            without_irgym(text, tmp_path)
        else:
            for line in text.splitlines():
                typed(line, tmp_path, monkeypatch)
