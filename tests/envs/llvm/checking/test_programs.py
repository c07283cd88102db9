"""Whole programs are compared by their output and how they end."""

from pathlib import Path

import pytest

from irgym.envs.llvm.checking.programs import Limits, compared_programs

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
    validation = compared_programs(first, second, ["one"], b"input\n", Limits(seconds=0.3))
    assert said in validation.detail
    assert validation.ok == (not said)
    assert validation.inputs == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("echo $$", "from run to run"),
        ("sleep 9", "stopped"),
        ("while :; do echo 1234567890; done", "stopped"),
    ],
)
def test_programs_that_cannot_be_compared_are_told(tmp_path: Path, text: str, said: str) -> None:
    """The original must repeat itself and end within the limits."""
    program = script(tmp_path, "a", text)
    validation = compared_programs(program, program, limits=Limits(seconds=0.3, output_bytes=1000))
    assert said in validation.blind
    assert not validation.checked


def test_each_run_has_a_folder_of_its_own(tmp_path: Path) -> None:
    """A program does not see the files of the run before."""
    program = script(tmp_path, "a", "ls; echo x > file")
    assert compared_programs(program, program).checked
