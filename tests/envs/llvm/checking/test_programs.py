"""Whole programs are compared by their output and how they end."""

from pathlib import Path

import pytest

from irgym.core.cost import Validation
from irgym.envs.llvm.checking.programs import both, compared_programs
from irgym.envs.llvm.whole.running import Limits, OtherEndError, Run, repeated

BASE = 'read line; printf "%s %s\\n" "$line" "$1"; exit 3'


def script(folder: Path, name: str, text: str) -> Path:
    """Return an executable file."""
    file = folder / name
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)
    return file


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (BASE.replace('"$line"', '"x"'), "differs from byte 0"),
        (BASE.replace("exit 3", "exit 4"), "status 4, not with status 3"),
        (BASE.replace("exit 3", "kill -SEGV $$"), "signal SIGSEGV"),
        (BASE.replace("exit 3", "echo more; exit 3"), "differs from byte"),
        ("while true; do :; done", "no end within"),
        (BASE + "\n", ""),
    ],
)
def test_differences_are_told(tmp_path: Path, other: str, said: str) -> None:
    """Output, status, signals and endless runs are compared."""
    first, second = script(tmp_path, "a", BASE), script(tmp_path, "b", other)
    validation = compared_programs(first, second, Run(("one",), b"input\n"), Limits(seconds=0.3))
    assert said in validation.detail
    assert validation.ok == (not said)
    assert validation.inputs == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("echo $$", "from run to run"),
        ("sleep 9", "stopped"),
        ("while :; do echo 1234567890; done", "stopped"),
        ("kill -SEGV $$", "crashes with signal SIGSEGV"),
    ],
)
def test_programs_that_cannot_be_compared_are_told(tmp_path: Path, text: str, said: str) -> None:
    """The original must repeat itself and end within the limits."""
    program = script(tmp_path, "a", text)
    validation = compared_programs(program, program, Run(), Limits(seconds=0.3, output_bytes=1000))
    assert said in validation.blind
    assert not validation.checked


def test_each_run_has_a_folder_of_its_own(tmp_path: Path) -> None:
    """A program does not see the files of the run before."""
    program = script(tmp_path, "a", "ls; echo x > file")
    assert compared_programs(program, program, Run()).checked


def test_repeated_runs_must_end_alike(tmp_path: Path) -> None:
    """Times of runs that end in other ways do not count; each run has a new folder."""
    repeated(script(tmp_path, "a", "ls; echo x > file; [ -z $(ls) ]; exit 3"), Run(), 3)(3)
    with pytest.raises(OtherEndError, match="a run ends with status 1, and another with status 0"):
        repeated(script(tmp_path, "b", "exit 1"), Run(), 0)(1)


def test_functions_that_were_not_compared_are_a_note_where_the_output_agrees() -> None:
    """Wrong functions and wrong output count alike."""
    functions = Validation(True, 0.0, "bit for bit", 0, blind="not compared: main (too long)")
    ran = Validation(True, 0.0, "output", 1)
    assert both(functions, ran).checked and "functions not compared: main" in both(functions, ran).notes[-1]
    assert both(functions, Validation(True, 0.0, "output", 0, blind="stopped")).blind == functions.blind
    wrong = both(Validation(False, 0.0, "", 1, "f: 1, not 2"), Validation(False, 0.0, "", 1, "output"))
    assert not wrong.ok and wrong.detail == "f: 1, not 2; output"
