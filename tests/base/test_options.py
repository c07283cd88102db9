"""Options within a word: reading them, applying them, and writing them."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from irgym.base.errors import IrgymError
from irgym.base.options import options_of, options_text, with_options, word_of, words_in
from irgym.base.values import Range


@dataclass(frozen=True)
class Inner:
    size: Annotated[int, Range(1, 9)] = 2


@dataclass(frozen=True)
class Part:
    width: Annotated[int, Range(1, 99)] = 4
    order: Literal["depth", "breadth"] = "depth"
    rate: float = 0.5
    whole: bool = False
    limit: int | None = None
    inner: Inner = field(default_factory=Inner)


@pytest.mark.parametrize(
    ("text", "name", "argument", "options"),
    [
        ("beam", "beam", "", {}),
        ("beam:width=2,order=depth", "beam", "", {"width": "2", "order": "depth"}),
        ("guided:runs/mine", "guided", "runs/mine", {}),
        ("guided:runs/mine,rollouts=8", "guided", "runs/mine", {"rollouts": "8"}),
        ("guided:runs/lr=1", "guided", "runs/lr=1", {}),
        ("part:label=a=b", "part", "", {"label": "a=b"}),
    ],
)
def test_a_word_has_a_name_an_argument_and_options(
    text: str, name: str, argument: str, options: dict[str, str]
):
    word = word_of(text)
    assert (word.text, word.name, word.argument, word.options) == (text, name, argument, options)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("beam:", "ends in a colon"),
        ("beam:width=2,width=3", "width is given twice"),
        ("beam:width=2,fast", "'fast' in .* is no option: write name=value"),
        ("beam:runs/a,runs/b", "'runs/b' in .* is no option"),
        ("beam:,width=2", "'' in .* is no option"),
    ],
)
def test_other_words_are_refused(text: str, message: str):
    with pytest.raises(IrgymError, match=message):
        word_of(text)


def test_a_comma_before_an_option_separates_no_words():
    assert words_in(["base,beam:width=2,order=depth,numpy", "guided:a,rollouts=8"]) == [
        "base",
        "beam:width=2,order=depth",
        "numpy",
        "guided:a,rollouts=8",
    ]
    assert words_in(["base,,numpy,", "width=2"]) == ["base", "numpy", "width=2"]


NAMES = st.sampled_from(["beam", "guided:runs/a", "tvm:trials=8", "raw:a=b/c", "mcts:batch=1,rollout=2"])


@given(st.lists(NAMES))
def test_words_joined_by_commas_or_blanks_are_the_same(words: list[str]):
    assert words_in([",".join(words)]) == words_in(words) == words


@pytest.mark.parametrize(
    ("option", "text", "value"),
    [
        ("width", "7", 7),
        ("rate", "2", 2.0),
        ("rate", "1e-3", 0.001),
        ("whole", "true", True),
        ("limit", "none", None),
        ("limit", "3", 3),
        ("order", "breadth", "breadth"),
    ],
)
def test_options_replace_fields(option: str, text: str, value: object):
    changed = with_options(Part(), {option: text}, "part")
    assert getattr(changed, option) == value and type(getattr(changed, option)) is type(value)


def test_options_of_a_dataclass_within_are_the_parts_own():
    changed = with_options(Part(), {"size": "5", "width": "1"}, "part")
    assert changed == Part(width=1, inner=Inner(5))
    assert options_of(Part()) == ["width", "order", "rate", "whole", "limit", "size"]
    assert options_text(changed, Part()) == "width=1,size=5" and not options_text(Part(), Part())
    assert word_of(f"part:{options_text(changed, None)}").options["order"] == "depth"


@pytest.mark.parametrize(
    ("option", "text", "message"),
    [
        ("widht", "2", "part has no option 'widht': did you mean width[?] choose among width, order,"),
        ("speed", "2", "part has no option 'speed': choose among width"),
        ("width", "0", "width of part is '0': choose 1 to 99"),
        ("width", "2.5", "width of part is '2.5': choose a whole number, 1 to 99"),
        ("width", "", "width of part is '': choose"),
        ("rate", "nan", "rate of part is 'nan': choose a finite number"),
        ("order", "sideways", "order of part is 'sideways': choose depth or breadth"),
        ("whole", "1", "whole of part is '1': choose true or false"),
        ("size", "10", "size of part is '10': choose 1 to 9"),
    ],
)
def test_bad_options_get_one_sentence(option: str, text: str, message: str):
    with pytest.raises(IrgymError, match=message):
        with_options(Part(), {option: text}, "part")


def test_a_part_that_is_no_dataclass_takes_no_options():
    assert with_options(None, {}, "numpy") is None and not options_of(None)
    with pytest.raises(IrgymError, match="numpy takes no options: leave out threads"):
        with_options(None, {"threads": "2"}, "numpy")
