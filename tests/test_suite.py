"""Rules for the tests."""

from pathlib import Path

import pytest

from irgym.measure.cache import CostCache, default_path


@pytest.mark.parametrize("time", ["first", "second"])
def test_costs_are_neither_the_users_nor_those_of_another_test(time: str, tmp_path: Path):
    assert default_path().parent.parent == tmp_path.parent
    assert not default_path().exists() and not default_path().is_symlink()
    CostCache(default_path()).close()
    assert default_path().exists()
