"""`irgym show`: a program along a schedule, measured or not."""

import json
import re
from pathlib import Path

import pytest
from commands import Command, Result
from passes import URIS

PROGRAM = "loops://mm/16x16x16"


def refused(result: Result, *words: str) -> None:
    assert result.code == 2 and not result.out and result.err.count("\n") == 1
    assert all(word in result.err for word in words)


def test_a_program_is_shown_without_measuring(irgym: Command, cache: Path):
    result = irgym("show", PROGRAM)
    assert result.code == 0 and not result.err and not cache.exists()
    assert result.out.splitlines()[0] == PROGRAM and "0  original\n-> for m (16 x 1)" in result.out
    assert not re.search(r"original +\d", result.out)


@pytest.mark.parametrize(
    "schedule", ["split_8 down swap_down", "split_8,down,swap_down", " split_8, down,swap_down "]
)
def test_each_state_of_a_schedule_is_shown(schedule: str, irgym: Command, tmp_path: Path):
    file = tmp_path / "show.json"
    result = irgym("show", PROGRAM, schedule, "--json", file)
    assert result.code == 0
    steps = json.loads(file.read_text())["steps"]
    assert [step["action"] for step in steps] == ["", "split_8", "down", "swap_down"]
    assert all(step["text"] in result.out and step["cost"] is None for step in steps)
    assert [line for line in result.out.splitlines() if line[:1].isdigit()] == [
        "0  original",
        "1  split_8",
        "2  down",
        "3  swap_down",
    ]


def test_costs_are_measured_on_request(irgym: Command, tmp_path: Path):
    file = tmp_path / "show.json"
    result = irgym("show", PROGRAM, "split_8,down", "--measure", "--json", file)
    assert result.code == 0 and re.search(r"0  original  [\d.]+ ns\n", result.out)
    assert re.search(r"2  down  [\d.]+ ns \([\d.]+x\)\n", result.out)
    data = json.loads(file.read_text())
    assert data["unit"] == "ns" and all(step["cost"] > 0 for step in data["steps"])


def test_costs_that_states_know_are_shown_anyway(irgym: Command):
    result = irgym("show", URIS[0], "fold0")
    assert result.code == 0 and re.search(r"0  original  \d+\n", result.out)
    assert re.search(r"1  fold0  \d+ \([\d.]+x\)\n", result.out)


def test_of_a_long_program_the_changes_are_shown(irgym: Command, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("irgym.cli.show.WHOLE", 2)
    result = irgym("show", PROGRAM, "split_8,down")
    first, second = result.out.split("1  split_8")
    assert "for m (16 x 1)" in first and "-> for m (16 x 1)" not in second.replace("--> for m (16 x 1)", "")
    assert "+-> for m (2 x 8)" in second and "C[m, n]" not in second.partition("2  down")[2]


@pytest.mark.parametrize(
    ("schedule", "words"),
    [
        ("split_9", ("no action 'split_9'", "split_8", "the other kinds are analytical, up, down")),
        ("splti_8", ("did you mean split?", "unroll")),
        ("down,up,merge", ("action 3", "merge", "does not apply")),
    ],
)
def test_refusals_say_what_there_is(schedule: str, words: tuple[str, ...], irgym: Command):
    refused(irgym("show", PROGRAM, schedule), *words)


def test_a_file_of_several_functions_is_shown_one_by_one(irgym: Command, tmp_path: Path):
    pytest.importorskip("llvmlite")
    file = tmp_path / "code.c"
    file.write_text("int f(int *p, int n) { int s = p[n * 3]; if (s > 1) s += p[n * 3]; return s; }")
    refused(irgym("show", file), "1 parts: show one of them", "#f")
    assert "original" in irgym("show", f"{file}#f").out
