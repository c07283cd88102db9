"""The documentation runs and follows the code: Python blocks, commands, links, generated tables, sizes."""

import importlib.util
import re
import shlex
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from irgym.agents import AGENTS
from irgym.cli.commands import OUTER, SUMMARIES, command_class, parsed
from irgym.cli.configuration import options_of, with_config

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "irgym"
GUIDES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
REFERENCE = sorted((ROOT / "docs" / "reference").glob("*.md"))
MEASURED = sorted((ROOT / "docs" / "measured").glob("*.md"))
PAGES = [*GUIDES, *REFERENCE, *MEASURED]
WORDS = 35_700
"""Words of the guides, at most."""


def named(page: Path) -> str:
    return str(page.relative_to(ROOT / "docs" if page.is_relative_to(ROOT / "docs") else ROOT))


def blocks(page: Path, language: str) -> list[str]:
    """Return the code blocks of a page in a language, those in lists too."""
    found = re.findall(rf"^( *)```{language}[^\n]*\n(.*?)^\1```", page.read_text(), re.MULTILINE | re.DOTALL)
    return [re.sub(rf"^{indent}", "", block, flags=re.MULTILINE) for indent, block in found]


def python(page: Path) -> list[str]:
    return blocks(page, "python")


def commands() -> list[str]:
    """Return the command lines of all pages, one after the other in blocks of bash."""
    lines = (
        line.removeprefix(".venv/bin/")
        for page in PAGES
        for block in blocks(page, "bash")
        for line in block.replace("\\\n", " ").splitlines()
    )
    return list(dict.fromkeys(line for line in lines if line.startswith("irgym ")))


def mentions() -> list[str]:
    """Return the command lines within sentences and tables; they need not be complete."""
    spans = (span for page in PAGES for span in re.findall(r"`(irgym [^`]+)`", page.read_text()))
    return list(dict.fromkeys(" ".join(span.split()) for span in spans))


def flags_of(name: str) -> set[str]:
    """Return the options of a command, and of all commands where it takes another."""
    inner = SUMMARIES.keys() - OUTER if name in OUTER else ()
    kinds = [with_config(command_class(known)) for known in (name, *inner)]
    return {option.flag for kind in kinds for option in options_of(kind)}


def generator() -> ModuleType:
    """Import the script that makes tables."""
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


RUN = [page for page in PAGES if python(page) and page.stem != "exports"]
"""Pages whose Python blocks run; those of `exports` run without irgym, in `test_exports.py`."""


@pytest.mark.parametrize("page", RUN, ids=named)
def test_python_blocks_run(
    page: Path, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)  # files that they write stay out of the checkout
    if "hlo" in page.read_text() and "import jax" in "\n".join(python(page)):
        request.getfixturevalue("engine")
    exec(compile("\n".join(python(page)), str(page), "exec"), {"__name__": page.stem})


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_other_python_blocks_compile(page: Path):
    for block in [*blocks(page, "py"), *blocks(page, r" \{ \.python")]:
        if "--8<--" not in block:  # a file, run by other tests
            compile(block, str(page), "exec")


@pytest.mark.parametrize("line", commands())
def test_command_lines_parse(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    Path("mine.toml").write_text(blocks(ROOT / "docs" / "cli.md", "toml")[0])
    Path("runs/mine").mkdir(parents=True)
    Path("runs/mine/config.json").write_text('{"environment": "loops", "agent": "ppo", "config": {}}')
    parsed(shlex.split(line, comments=True)[1:])


@pytest.mark.parametrize("line", mentions())
def test_mentioned_commands_and_options_exist(line: str):
    name, *words = line.removeprefix("irgym ").split()
    if name == "--help" or name.isupper():
        return
    assert name in SUMMARIES
    assert {word for word in words if word.startswith("--")} <= {"--help", *flags_of(name)}


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_and_files_exist(page: Path):
    text = page.read_text()
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", text):
        assert (page.parent / target).exists(), target
    for snippet in re.findall(r'--8<-- "([^":]+)', text):
        assert (ROOT / snippet).exists(), snippet
    if page.stem == "foreign_mlir":
        return  # it names files of other projects
    for path in re.findall(r"`((?:python )?(?:examples|benchmarks|fuzz|tests|docs|src)/[\w/.-]+)", text):
        assert (ROOT / path.removeprefix("python ")).exists(), path


ROOMS = "|".join(path.name for path in SOURCE.iterdir() if path.is_dir())
SOURCES = re.compile(rf"`((?:{ROOMS})/[\w/]*(?:\.py|\.cc|/))`")


@pytest.mark.parametrize("page", [*GUIDES, *REFERENCE], ids=named)
def test_files_and_folders_of_the_source_exist(page: Path):
    for path in SOURCES.findall(page.read_text()):
        assert (SOURCE / path).exists(), path


@pytest.mark.parametrize("page", sorted((ROOT / "docs").rglob("*.md")), ids=named)
def test_modules_of_the_api_exist(page: Path):
    for name in re.findall(r"^::: (\S+)", page.read_text(), re.MULTILINE):
        assert importlib.util.find_spec(name) is not None, name


def test_generated_tables_are_up_to_date():
    made = generator()
    stale = [named(page) for page in made.PAGES if made.generated(page.read_text()) != page.read_text()]
    assert not stale, "run `python docs/generate.py`"


@pytest.mark.parametrize("name", ["loops", "linalg", "cse"])
def test_guides_name_every_kind_of_action(name: str):
    kinds = import_module(f"irgym.envs.{name}.actions").SPACE.kinds
    text = (ROOT / "docs" / f"{name}.md").read_text()
    assert [kind.name for kind in kinds if not re.search(rf"`{kind.name}[_@`]", text)] == []


def test_every_command_has_a_section():
    text = (ROOT / "docs" / "reference" / "commands.md").read_text()
    listed = re.findall(r"^\| \[.*\]\(#(\w+)\)", text, re.MULTILINE)
    assert listed and set(listed) == set(re.findall(r"^## (\w+)$", text, re.MULTILINE))


def test_every_page_is_in_the_navigation():
    navigation = (ROOT / "mkdocs.yml").read_text()
    pages = [*GUIDES[2:], *REFERENCE, *sorted((ROOT / "docs" / "api").glob("*.md"))]
    assert [named(page) for page in pages if named(page) not in navigation] == []


def test_the_menu_of_the_api_lists_every_environment():
    folders = (path for path in (SOURCE / "envs").iterdir() if (path / "environment.py").exists())
    assert {path.name for path in folders} <= {path.stem for path in (ROOT / "docs" / "api").glob("*.md")}


def test_every_agent_has_its_entries():
    table = (ROOT / "docs" / "learners.md").read_text()
    headings = (ROOT / "docs" / "reference" / "agents.md").read_text().splitlines()
    modules = (ROOT / "docs" / "api" / "agents.md").read_text().splitlines()
    for name in AGENTS.builtin:
        assert f"| `{name}` |" in table and f"## {name}" in headings
        assert f"::: {AGENTS.load(name).__module__}" in modules


def test_guides_are_short():
    assert sum(len(page.read_text().split()) for page in GUIDES) <= WORDS
