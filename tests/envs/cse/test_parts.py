"""A whole file: each function is tuned, and the module written with all of them."""

from json import loads as load
from pathlib import Path
from typing import Any

import pytest

import irgym
from irgym.api.requests import Searching
from irgym.api.tuning import Tuning
from irgym.base.errors import IrgymError, ProgramError
from irgym.cli.tune import Tune
from irgym.envs.cse.environment import CSE
from irgym.judging.validator import Validator
from irgym.llvmir.programs.kernels import KERNELS

SOURCE = """
int f(int *p, int n) { int s = p[n * 3]; if (s > 1) s += p[n * 3]; return s; }
static int g(int *p, int n) { int s = p[n + 7] * n; if (s > 1) s += p[n + 7] * n; return s; }
int h(int *p, int n) { return g(p, n) + g(p, 2 * n); }
"""


MANY = "int a = p[n * 5], b = p[n * 7] + n * 11; if (a > b) return p[n * 5] * (p[n * 7] + n * 11); p[n] = b;"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "code.c"
    path.write_text(SOURCE)
    return path


def test_all_functions_of_a_file_are_tuned(file: Path, tmp_path: Path):
    found = irgym.tune_parts(str(file))
    assert [result.program for result in found.results] == [f"cse:{file}#f", f"cse:{file}#g"]
    assert found.proven == 2 and not found.failures
    assert found.speedup is not None and found.speedup.mean >= 1
    assert found.reference_ratio is not None and found.reference_ratio.n == 2
    [written] = found.export(tmp_path / "out.ll")
    for result in found.results:
        assert result.task.text(result.state).strip() in written.read_text()
    assert CSE.task(f"cse:{written}#h").analysed.function.name == "@h"
    with pytest.raises(IrgymError, match="end the name in"):
        found.export(tmp_path / "out.s")


def test_results_are_reported_after_each_function(file: Path):
    told: list[tuple[str, ...]] = []
    found = irgym.tune_parts(
        str(file),
        done=lambda result: told.append(tuple(part.program for part in result.results)),
        searching=irgym.Searching(evaluations=6),
    )
    f, g = f"cse:{file}#f", f"cse:{file}#g"
    assert told == [(f,), (f, g)]
    spent = [result.search.evaluations for result in found.results if result.search]
    assert sum(spent) <= 6 and spent[0] == 3, "both share one budget"


def test_functions_with_few_choices_come_first(tmp_path: Path):
    path = tmp_path / "code.c"
    path.write_text(f"int many(int *p, int n) {{ {MANY} return p[n]; }}\n{SOURCE}")
    names = [uri.partition("#")[2] for uri in CSE.parts(f"cse:{path}")]
    assert names == ["f", "g", "many"]


def test_a_run_that_is_cut_short_leaves_what_it_had(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    real, begun = Tuning.tune, list[str]()

    def interrupted(*arguments: Any) -> Any:
        begun.append(arguments[2])
        if len(begun) == 2:
            raise KeyboardInterrupt
        return real(*arguments)

    monkeypatch.setattr(Tuning, "tune", interrupted)
    written, json = tmp_path / "out.ll", tmp_path / "out.json"
    with pytest.raises(KeyboardInterrupt):
        Tune(str(file), searching=Searching(evaluations=8), export=written, json=json).run()
    assert [part["program"] for part in load(json.read_text())["parts"]] == begun[:1]
    shared = load(json.read_text())["parts"][0]["schedule"]
    assert shared and not CSE.task(f"cse:{written}#f").names and CSE.task(f"cse:{written}#g").names


def test_an_interrupt_ends_with_the_function_that_it_meets(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def interrupted(*arguments: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(Validator, "__call__", interrupted)
    written, json = tmp_path / "out.ll", tmp_path / "out.json"
    Tune(str(file), searching=Searching(evaluations=8), export=written, json=json).run()
    data = load(json.read_text())
    assert [(part["program"], part["schedule"]) for part in data["parts"]] == [(f"cse:{file}#f", "")]
    assert data["parts"][0]["interrupted"] and list(data["failures"]) == [f"cse:{file}#g"]
    assert "interrupted before its turn" in capsys.readouterr().out and written.exists()


def test_all_columns_are_printed_where_there_is_no_terminal(file: Path, capsys: pytest.CaptureFixture[str]):
    text = file.read_text().replace("f(int *p", f"{'f' * 150}(int *p")
    file.write_text(text)
    Tune(str(file), searching=Searching(evaluations=8)).run()
    out = capsys.readouterr().out
    for column in ("original", "tuned", "over", "validated"):
        assert column in out
    assert f"{'f' * 150}: share@" in out


def test_a_function_of_a_file_needs_no_scheme(file: Path):
    assert irgym.tune(f"{file}#f").program == f"cse:{file}#f"


def test_programs_without_parts_are_refused(tmp_path: Path):
    assert CSE.parts(f"cse:{KERNELS / 'sorting.c'}#sift") == ()
    with pytest.raises(IrgymError, match="is one program and has no parts"):
        irgym.tune_parts("loops://mm/64x64x64")
    plain = tmp_path / "plain.c"
    plain.write_text("int f(int n) { return n; }\n")
    with pytest.raises(ProgramError, match="no function in which two blocks compute the same"):
        irgym.tune_parts(str(plain))
