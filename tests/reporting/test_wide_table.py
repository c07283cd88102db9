"""Tables that fit the terminal."""

from io import StringIO

import pytest
from rich.console import Console

from irgym.reporting.wide_table import WideTable

COLUMNS = ["program", *(f"policy:number{place}" for place in range(6)), "ratio to something"]
ROWS = [
    ["loops://conv/1x56x56x64x64x3x3?with=more", *(f"{place}.25x  1.0{place}" for place in range(6)), "0.9"],
    ["short", *(f"1{place}.25x  1.0{place}" for place in range(6)), "1.1 [0.9, 1.2]"],
]


def shown(width: int) -> list[str]:
    console = Console(width=width, record=True, file=StringIO())
    console.print(WideTable("a title", COLUMNS, ROWS, "a caption"))
    return console.export_text().splitlines()


@pytest.mark.parametrize("width", [80, 100, 160])
def test_nothing_is_cut_and_everything_fits(width: int):
    lines = shown(width)
    text = "\n".join(lines)
    assert max(map(len, lines)) <= width and "…" not in text
    for row in (COLUMNS[1:-1], *(row[1:] for row in ROWS)):
        assert all(cell in text for cell in row)
    assert text.count("a title") > 1 or width == 160
    assert text.count("a caption") == 1 and lines[-1].strip() == "a caption"


def test_a_table_of_names_alone():
    console = Console(width=80, record=True, file=StringIO())
    console.print(WideTable("names", ["name"], [["one"]]))
    assert "one" in console.export_text()
