"""Profiles of sizes: what texts name them, and the shares of calls that weights come to."""

import pytest

from irgym.base.errors import ProgramError
from irgym.core.profiles import MOST, Profile, profiles_of, shares, split


def test_sizes_and_weights_are_read():
    assert split("batch=1,x.0=320:0.7") == ({"batch": 1, "x.0": 320}, 0.7)
    assert split("batch=1") == ({"batch": 1}, None)
    assert split("batch=1,Min(a, b:c)=3:2") == ({"batch": 1, "Min(a, b:c)": 3}, 2.0), "names of exporters"


def test_profiles_print_and_parse_back():
    profiles = profiles_of(["width=3,batch=1:0.7", "batch=8,width=2:1e-6"], {"k": 5})
    assert profiles[0] == Profile((("batch", 1), ("k", 5), ("width", 3)), 0.7)
    assert profiles[0].text == "batch=1,k=5,width=3:0.7"
    assert profiles_of([profile.text for profile in profiles], {}) == profiles


def test_weights_need_not_sum_to_one_and_are_equal_by_default():
    assert shares(profiles_of(["n=1:30", "n=2:10"], {})) == [0.75, 0.25]
    assert shares(profiles_of(["n=1", "n=2"], {})) == [0.5, 0.5]


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (["n=1:0", "n=2:1"], "the weight '0' must be a number"),
        (["n=1:-1", "n=2:1"], "the weight '-1' must be a number"),
        (["n=1:nan", "n=2:1"], "the weight 'nan' must be a number"),
        (["n=1:inf", "n=2:1"], "the weight 'inf' must be a number"),
        (["n=1:", "n=2:1"], "the weight '' must be a number"),
        (["n=1:much", "n=2:1"], "the weight 'much' must be a number"),
        (["n=1:0.5", "n=2"], "'n=2' have no weight, and others have"),
        (["n=1", "n=1"], "n=1 are named twice"),
        (["n=1,m=2", "m=2,n=1:"], "the weight ''"),
        (["n=1,m=2", "n=3"], "'n=3' lack m, which others name"),
        (["n=1,n=2", "n=3"], "n is given twice"),
        (["n=0", "n=3"], "n must be a whole number in 1 to"),
        (["n=1:1,m=2", "n=3"], "is no size of a dimension"),
        (["k=1", "k=3"], "k is given twice"),
        ([f"n={size}" for size in range(1, MOST + 2)], f"{MOST + 1} profiles of sizes are too many"),
    ],
)
def test_profiles_that_make_no_sense_are_refused(texts: list[str], said: str):
    with pytest.raises(ProgramError, match=said):
        profiles_of(texts, {"k": 5} if texts[0].startswith("k") else {})
