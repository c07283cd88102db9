"""Command lines before they are parsed."""

import pytest

from irgym.base.errors import IrgymError
from irgym.cli.words import check_words, together


def test_some_options_may_be_given_several_times():
    words = ["m.onnx", "--sizes", "a=1", "--seed", "3", "--sizes=a=2", "a=3", "--range=x=0:2", "--quick"]
    check_words(words, {"--sizes", "--range"})
    assert together(words) == [
        *("m.onnx", "--sizes", "a=1", "a=2", "a=3", "--seed", "3", "--range", "x=0:2", "--quick")
    ]
    assert together(["--sizes", "a=1", "--", "--sizes", "a=2"]) == ["--sizes", "a=1", "--", "--sizes", "a=2"]


def test_others_may_not():
    for words in (["--seed", "3", "--seed", "4"], ["--methods", "base", "--methods", "random"]):
        with pytest.raises(IrgymError, match="is given twice"):
            check_words(words, {"--sizes", "--methods"})
    with pytest.raises(IrgymError, match="is given nothing"):
        check_words(["--sizes", "a=1", "--sizes"], {"--sizes"})
