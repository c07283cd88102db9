"""Grids of sizes and options: every combination once, and mistakes in one sentence."""

from itertools import product

import pytest

from irgym.base.errors import ProgramError
from irgym.core.grids import grid, is_grid
from irgym.core.uri import Family, Grammar, Option

FAMILIES = (
    Family("mm", "", (Option("mode", "a", choices=("a", "b")), Option("fast", False)), sizes=("M", "N")),
    Family("add", "", sizes=("A", "B"), ranks=(1, 3)),
    Family("net", "", (Option("width", 8), Option("heads", 2)), multiples=(("width", "heads", 1),)),
    Family("text", "", (Option("a", 0, low=0),), body="ab->a"),
)
GRAMMAR = Grammar("toy", {family.name: family for family in FAMILIES})


def programs(text: str) -> list[str]:
    return grid(GRAMMAR, text, lambda uri: GRAMMAR.parse(uri).uri)[0]


def test_every_combination_in_order():
    sizes = product(range(64, 129, 16), (1, 5, 6, 7))
    assert programs("mm:m=64:128:16,n=1/5:7") == [f"toy://mm/{m}x{n}" for m, n in sizes]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("mm:n=2,m=1", ["mm/1x2"]),
        ("mm:m=1:8:3,n=2", ["mm/1x2", "mm/4x2", "mm/7x2"]),
        ("mm:m=3:3,n=2", ["mm/3x2"]),
        ("mm:m=1,n=2,mode=a/b,fast=true", ["mm/1x2?fast=true", "mm/1x2?fast=true&mode=b"]),
        ("add:a=4", ["add/4"]),
        ("add:a=4/5,b=6,c=7", ["add/4x6x7", "add/5x6x7"]),
        ("text/ab->b:a=1:2", ["text/ab->b?a=1", "text/ab->b?a=2"]),
    ],
)
def test_forms(text: str, expected: list[str]):
    assert programs(text) == [f"toy://{uri}" for uri in expected]


def test_combinations_that_are_no_programs_are_left_out():
    uris, refused = grid(GRAMMAR, "net:width=4/6/9,heads=2/3", lambda uri: GRAMMAR.parse(uri).uri)
    assert len(uris) == 4 and len(refused) == 2 and "width (4) must be a multiple of heads (3)" in refused[0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("mm:m=1", "does not say n"),
        ("add:b=1", "does not say a"),
        ("mm:m=1,n=2,k=3", "malformed at 'k=3': .* m, n, mode, fast"),
        ("mm:m=1,m=2,n=3", "m is given twice"),
        ("mm:", "malformed at ''"),
        ("mm:m=8:4,n=1", "'8:4' is no range"),
        ("mm:m=1:4:0,n=1", "'1:4:0' is no range"),
        ("mm:m=0,n=1", "M must be a whole number in 1"),
        ("mm:m=1:x,n=1", "M must be a whole number"),
        ("mm:m=1,n=2,mode=c", "mode must be a or b"),
        ("mm:m=1:999999999,n=1", "'1:999999999' has more than 100,000"),
        ("mm:m=1:1000,n=1:1000", "has 1,000,000 programs"),
        ("mm/x:m=1,n=1", "malformed: begin with mm:"),
        ("text:a=1", "malformed: begin with text/ab->a:"),
        ("net:width=3,heads=2", "has no programs: .*width \\(3\\) must be a multiple"),
    ],
)
def test_mistakes(text: str, message: str):
    with pytest.raises(ProgramError, match=message):
        programs(text)


def test_other_texts_are_no_grids():
    assert is_grid(GRAMMAR, "mm:m=1") and is_grid(GRAMMAR, "text/ab->a:a=1")
    assert (
        not is_grid(GRAMMAR, "mm") and not is_grid(GRAMMAR, "mm_random:count=1") and not is_grid(GRAMMAR, "x")
    )
