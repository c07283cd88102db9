"""Wording of code, tests and documentation: see `tests/toys/words.py` for the habits to avoid."""

from pathlib import Path

import pytest
from words import files_in, in_file

ROOT = Path(__file__).parent.parent
PLACES = ("src", "tests", "benchmarks", "fuzz", "examples", "docs", "README.md", "CONTRIBUTING.md")


@pytest.mark.parametrize("place", PLACES)
def test_plain_words(place: str):
    found = [line for file in files_in([ROOT / place]) for line in in_file(file)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("text", "habit"),
    [
        ("for one in range(3): pass", "variable"),
        ("f = lambda one: one", "parameter"),
        ('"""What it is."""', "docstring"),
        ("x = 1  # measured anew", "anew"),
    ],
)
def test_habits_are_found(text: str, habit: str, tmp_path: Path):
    file = tmp_path / "habit.py"
    file.write_text(text)
    assert any(habit in line for line in in_file(file))
