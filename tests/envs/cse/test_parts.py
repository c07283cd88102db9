"""A whole file: each function is tuned, and the module written with all of them."""

from pathlib import Path

import pytest

import irgym
from irgym.core.errors import IrgymError, ProgramError
from irgym.envs.cse.environment import CSE
from irgym.envs.cse.programs.uris import KERNELS

SOURCE = """
int f(int *p, int n) { int s = p[n * 3]; if (s > 1) s += p[n * 3]; return s; }
static int g(int *p, int n) { int s = p[n + 7] * n; if (s > 1) s += p[n + 7] * n; return s; }
int h(int *p, int n) { return g(p, n) + g(p, 2 * n); }
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "code.c"
    path.write_text(SOURCE)
    return path


def test_all_functions_of_a_file_are_tuned(file: Path, tmp_path: Path):
    found = irgym.tune_parts(str(file))
    assert [one.program for one in found.results] == [f"cse:{file}#f", f"cse:{file}#g"]
    assert found.proven == 2 and not found.failures
    assert found.speedup is not None and found.speedup.mean >= 1
    assert found.reference_ratio is not None and found.reference_ratio.n == 2
    [written] = found.export(tmp_path / "out.ll")
    for one in found.results:
        assert one.task.text(one.state).strip() in written.read_text()
    assert CSE.task(f"cse:{written}#h").analysed.function.name == "@h"
    with pytest.raises(IrgymError, match="end the name in"):
        found.export(tmp_path / "out.s")


def test_a_function_of_a_file_needs_no_scheme(file: Path):
    assert irgym.tune(f"{file}#f").program == f"cse:{file}#f"


def test_what_has_no_parts_is_told(tmp_path: Path):
    assert CSE.parts(f"cse:{KERNELS / 'sorting.c'}#sift") == ()
    with pytest.raises(IrgymError, match="is one program and has no parts"):
        irgym.tune_parts("loops://mm/64x64x64")
    plain = tmp_path / "plain.c"
    plain.write_text("int f(int n) { return n; }\n")
    with pytest.raises(ProgramError, match="no function in which two blocks compute the same"):
        irgym.tune_parts(str(plain))
