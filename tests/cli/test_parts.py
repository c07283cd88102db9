"""`irgym tune` on a whole file: a line for each function, the means, JSON, and the module written."""

import json
from pathlib import Path

import pytest
from commands import Command

from irgym.envs.cse.programs.targets import TARGETS
from irgym.measure.target import runs_here

pytest.importorskip("llvmlite")

SOURCE = """
int f(int *p, int n) { int s = p[n * 3]; if (s > 1) s += p[n * 3]; return s; }
int g(int *p, int n) { int s = p[n + 7] * n; if (s > 1) s += p[n + 7] * n; return s; }
"""


def test_a_whole_file(irgym: Command, tmp_path: Path):
    file = tmp_path / "code.c"
    file.write_text(SOURCE)
    out, module = tmp_path / "out.json", tmp_path / "out.ll"
    said = irgym("tune", file, "--json", out, "--export", module)
    assert said.code == 0, said.err
    assert "geometric mean over the original program" in said.out and "2 of 2 are proven" in said.out
    found = json.loads(out.read_text())
    assert [part["program"] for part in found["parts"]] == [f"cse:{file}#f", f"cse:{file}#g"]
    assert found["proven"] == 2 and "define" in module.read_text()


def test_a_report_is_about_one_function(irgym: Command, tmp_path: Path):
    file = tmp_path / "code.c"
    file.write_text(SOURCE)
    said = irgym("tune", file, "--report", tmp_path / "page.html")
    assert said.code == 2 and "a report is about one function" in said.err
    said = irgym("tune", f"{file}#f", "--report", tmp_path / "page.html")
    assert said.code == 0, said.err
    page = (tmp_path / "page.html").read_text()
    assert "Assembly before" in page and "LLVM&#x27;s IR after" in page and 'class="removed"' in page


def test_code_for_other_machines_is_scored_and_not_called_validated(irgym: Command, tmp_path: Path):
    file = tmp_path / "code.c"
    file.write_text(SOURCE)
    for target in (target for target in ("i686", "aarch64") if not runs_here(TARGETS[target])):
        said = irgym("tune", f"{file}#f", "--target", target)
        assert said.code == 0 and f"code for {target}" in said.out, said.err
        assert "not checkable: code for another machine is not run" in said.out
