"""The documentation runs: Python blocks, command lines, links between files."""

import re
import shlex
from pathlib import Path

import pytest

from irgym.cli.commands import parsed

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)


def python(page: Path) -> list[str]:
    return blocks(page, "python")


def commands() -> list[str]:
    found: list[str] = []
    for page in PAGES:
        for block in blocks(page, "bash"):
            lines = block.replace("\\\n", " ").splitlines()
            found += [line for line in lines if re.match(r"(\.venv/bin/)?irgym ", line)]
    return list(dict.fromkeys(found))


# What the page on exports shows runs without irgym: `test_exports.py`.
RUN = [page for page in PAGES if python(page) and page.stem != "exports"]


@pytest.mark.parametrize("page", RUN, ids=lambda page: page.name)
def test_python_blocks_run(
    page: Path, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)  # what they write is not for the checkout
    if page.stem == "hlo":
        request.getfixturevalue("engine")
    exec(compile("\n".join(python(page)), str(page), "exec"), {"__name__": page.stem})


@pytest.mark.parametrize("line", commands())
def test_command_lines_parse(line: str):
    arguments = shlex.split(line, comments=True)[1:]
    parsed(arguments)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_and_files_exist(page: Path):
    text = page.read_text()
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", text):
        assert (page.parent / target).exists(), target
    for snippet in re.findall(r'--8<-- "([^":]+)', text):
        assert (ROOT / snippet).exists(), snippet
    for path in re.findall(r"`((?:examples|benchmarks|tests)/[\w/.]+)`", text):
        assert (ROOT / path).exists(), path
