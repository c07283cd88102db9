"""Splits: stable for each program, never empty, and the same in every set."""

import hashlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from irgym.base.errors import ProgramError
from irgym.core.dataset import Dataset, divided, place_of

SHARES = st.sampled_from([0.05, 0.1, 0.2, 0.5, 0.9])


def own(*names: str) -> dict[str, str]:
    return {name: name for name in names}


@given(st.text())
def test_one_in_ten_by_the_hash(text: str):
    number = int.from_bytes(hashlib.sha256(text.encode(errors="replace")).digest()[:8], "big")
    place = place_of(text.encode(errors="replace").decode())
    assert 0 <= place < 1
    assert [place < share / 10 for share in range(1, 10)] == [number % 10 < share for share in range(1, 10)]


@given(st.sets(st.text("abc", min_size=1), min_size=2, max_size=40), SHARES)
def test_both_splits_have_programs_and_share_none(names: set[str], share: float):
    train, test = divided(own(*names), share)
    assert train and test and not set(train) & set(test) and set(train) | set(test) == names


@settings(max_examples=20)
@given(st.sets(st.integers().map(str), min_size=30, max_size=40), st.text("xyz", min_size=1))
def test_a_further_program_moves_no_other(names: set[str], further: str):
    before, after = divided(own(*names), 0.5), divided(own(*names, further), 0.5)
    assert set(before[0]) <= set(after[0]) and set(before[1]) <= set(after[1])


def test_where_hashing_leaves_a_split_empty_the_nearest_program_moves():
    low, middle, high = sorted("abc", key=place_of)
    assert divided(own("a", "b", "c"), 1e-9)[1] == (low,)
    assert divided(own("a", "b", "c"), 1 - 1e-9)[0] == (high,)
    assert middle not in (low, high)


def test_a_single_program_is_in_both_and_a_share_of_0_keeps_all_for_training():
    assert divided(own("a")) == (("a",), ("a",))
    assert divided(own("a"), 0) == (("a",), ()) and divided(own("a", "b"), 0) == (("a", "b"), ())
    assert divided({}) == ((), ())


def test_equal_content_is_never_in_both_splits():
    copies = {f"copy{number}": "the same" for number in range(5)} | own(*"abcdefgh")
    train, test = divided(copies, 0.5)
    assert len({name in test for name in copies if name.startswith("copy")}) == 1 and train


def test_an_empty_split_is_refused_with_the_remedy():
    dataset = Dataset("mine", "", ("a",), ())
    assert dataset.split("train") == dataset.split("all") == ("a",)
    with pytest.raises(ProgramError, match=r"mine has no test programs: .*--holdout 0\.2"):
        dataset.split("test")
    with pytest.raises(ProgramError, match="no split 'dev': choose train, test or all"):
        dataset.split("dev")
