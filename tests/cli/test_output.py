import ast
import io
from pathlib import Path

import passes
import pytest
from commands import Command
from rich.console import Console
from rich.table import Table
from rich.text import Text

import irgym
from irgym.cli import output
from irgym.core.environment import BackendStatus

NAMES = ["n[h+r]c", "/tmp/[/x].mlir", "pip install 'irgym[loops]'", "[bold]x[/bold]", ":smile:", "[", "\\[a]"]
"""Text that rich would read as markup, refuse or change."""

SOURCES = Path(irgym.__file__).parent


@pytest.mark.parametrize("name", NAMES)
def test_text_is_shown_as_it_is_wherever_it_stands(name: str, capsys: pytest.CaptureFixture[str]):
    out = output.console()
    table = Table(f"head {name}", title=f"title {name}", caption=f"caption {name}")
    table.add_row(f"cell {name}")
    with out.status(f"doing {name}") as status:
        status.update(f"doing now {name}")
        out.print(f"said {name}")
        out.print(f"dim {name}", style="dim")
        out.print(Text(f"text {name}"))
        out.print(table)
    printed = capsys.readouterr().out
    for place in ("said", "dim", "text", "head", "title", "caption", "cell"):
        assert f"{place} {name}" in printed


@pytest.mark.parametrize("name", NAMES)
def test_so_is_what_is_being_done(name: str, monkeypatch: pytest.MonkeyPatch):
    shown = io.StringIO()
    monkeypatch.setattr(
        output,
        "Console",
        lambda **options: Console(file=shown, force_terminal=True, **options | {"width": 99}),
    )
    with output.console().status(f"doing {name}") as status:
        status.update(f"then {name}")
    assert f"then {name}" in shown.getvalue()


def test_long_lines_stay_whole(capsys: pytest.CaptureFixture[str]):
    output.console().print("policy: " + "folder/" * 60)
    assert capsys.readouterr().out.count("\n") == 1


def test_no_other_place_has_a_console_or_reads_markup():
    """A command that printed by other means would have to escape by itself, and one day would not."""
    forbidden = {
        "Console",
        "Spinner",
        "Status",
        "Progress",
        "Prompt",
        "from_markup",
        "render_markup",
        "rprint",
    }
    found: list[str] = []
    for file in sorted(SOURCES.rglob("*.py")):
        if file == SOURCES / "cli" / "output.py":
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            names: set[str] = set()
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "rich":
                names = {alias.name for alias in node.names} & (
                    forbidden | {"print", "get_console", "inspect"}
                )
            elif isinstance(node, ast.Import):
                names = {alias.name for alias in node.names if alias.name.split(".")[0] == "rich"}
            elif isinstance(node, ast.Attribute):
                names = {node.attr} & forbidden
            elif isinstance(node, ast.keyword):
                names = {node.arg or ""} & {"markup", "emoji", "highlight"}
            found += [f"{file.relative_to(SOURCES)}:{node.lineno}: {name}" for name in names]
    assert found == [], "print through irgym.cli.output.console()"


def test_envs_name_the_extra_to_install(irgym: Command, monkeypatch: pytest.MonkeyPatch):
    missing = BackendStatus("llvm", False, "no llvmlite", "pip install 'irgym[loops]'")
    monkeypatch.setattr(passes.PassEnvironment, "backends", lambda self: [missing])
    monkeypatch.setattr("irgym.base.registry.Registry.names", lambda self: ["passes"])
    assert "pip install 'irgym[loops]'" in irgym("envs").out


def test_a_program_is_printed_under_its_own_name(irgym: Command):
    program = "loops://einsum/n[h+r]c,rck->nhk?n=1&h=4&r=3&c=4&k=8"
    replayed = irgym("replay", program, "down")
    assert replayed.code == 0 and "n[h+r]c" in replayed.out


def test_a_program_and_a_path_that_look_like_markup(irgym: Command, tmp_path: Path):
    program, path = "passes://[b]/9-8-7-6-5-4-3-2", tmp_path / "[" / "x]"
    path.parent.mkdir()
    done = irgym("tune", program, "--evaluations", "3", "--search", "random", "--json", path)
    assert done.code == 0 and program in done.out and path.is_file()
    compared = irgym("compare", "passes", "--programs", program, "--methods", "base", "--json", path)
    assert compared.code == 0 and program in compared.out
    missing = irgym("tune", program, "--json", tmp_path / "[" / "[" / "x]")
    assert missing.code == 2 and str(tmp_path / "[" / "[" / "x]") in missing.err


def test_progress_is_plain_lines_where_there_is_no_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    now = [100.0]
    monkeypatch.setattr(output.time, "monotonic", lambda: now[0])
    with output.console().status("reading") as status:
        status.update("reading")
        for seconds, text in (
            (0, "best 1.5 ms, 9 s left"),
            (1, "best 1.4 ms, 8 s left"),
            (6, "best 1.2 ms, 2 s left"),
        ):
            now[0] = 100.0 + seconds
            status.update(text)
        status.update("checking")
    lines = [line.removeprefix("# ") for line in capsys.readouterr().err.splitlines()]
    assert lines == ["reading", "best 1.5 ms, 9 s left", "best 1.2 ms, 2 s left", "checking"]
