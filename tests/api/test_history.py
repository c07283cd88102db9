"""Past results: kept, shown, resumed, and reused as they are."""

import json
from pathlib import Path

import pytest

import irgym
from irgym.base.errors import IrgymError, StorageError
from irgym.cli.main import main
from irgym.judging.history import History, best_first
from irgym.measure.cache import CostCache, default_path

PROGRAM = "loops://mm/24x24x24"


def test_a_result_is_recorded_with_how_it_was_found():
    assert irgym.history(PROGRAM) == []
    found = irgym.tune(PROGRAM, searching=irgym.Searching(search="evolutionary", evaluations=30))
    [known] = irgym.history(PROGRAM)
    assert (known.program, known.schedule, known.search) == (PROGRAM, found.schedule, "evolutionary")
    assert (known.cost, known.cost_as_written) == (found.cost, found.cost_as_written)
    assert known.evaluations == 30 and known.validated and known.version == irgym.__version__
    assert irgym.history("loops://mm/24x24x32") == []
    assert irgym.history(PROGRAM, measuring=irgym.Measuring(target="x86-64")) == []


def test_a_search_goes_on_from_what_was_found():
    first = irgym.tune(PROGRAM, searching=irgym.Searching(search="evolutionary", evaluations=30))
    again = irgym.tune(PROGRAM, searching=irgym.Searching(search="random", evaluations=2, resume=True))
    if first.schedule:
        assert again.schedule in (first.schedule, "")  # "": where the machine was disturbed
        assert irgym.history(PROGRAM)[-1].evaluations == 2


def test_a_search_that_goes_on_draws_other_candidates():
    def rows() -> int:
        with CostCache(default_path()) as cache:
            return cache.stats().rows

    irgym.tune(PROGRAM, searching=irgym.Searching(search="random", evaluations=12))
    first = rows()
    irgym.tune(PROGRAM, searching=irgym.Searching(search="random", evaluations=12))
    assert rows() == first, "the same seed draws the same, whose costs are recorded"
    irgym.tune(PROGRAM, searching=irgym.Searching(search="random", evaluations=12, resume=True))
    assert rows() > first


def test_seconds_are_added_to_what_was_found():
    irgym.tune(PROGRAM, searching=irgym.Searching(search="random", evaluations=4))
    main(["tune", PROGRAM, "--search", "random", "--add-seconds", "1.5"])
    _, second = irgym.history(PROGRAM)
    assert second.search == "random" and second.evaluations > 1
    with CostCache(default_path()) as cache:
        assert cache.stats().rows > 4, "other candidates were drawn"


def test_schedules_of_other_actions_are_left_out_and_told_of(own_cache: Path):
    irgym.tune(PROGRAM, searching=irgym.Searching(search="random", evaluations=4))
    path = History().path
    row = json.loads(path.read_text()) | {"schedule": "teleport_3", "cost": 1.0}
    path.write_text(path.read_text() + json.dumps(row) + "\n")
    told: list[str] = []
    irgym.tune(
        PROGRAM, note=told.append, searching=irgym.Searching(search="random", evaluations=4, resume=True)
    )
    assert any("left out" in line and "teleport" in line for line in told)


def test_quick_takes_the_best_without_a_search():
    pytest.importorskip("torch")
    first = irgym.tune(PROGRAM, searching=irgym.Searching(quick=True))
    assert first.search is not None and (first.search.name, first.search.policy) == ("quick", "default")
    assert 2 <= first.search.evaluations < 40 and first.speedup >= 1.0 and first.validated
    best = best_first(irgym.history(PROGRAM))[0]
    taken = irgym.tune(PROGRAM, searching=irgym.Searching(quick=True))
    assert taken.search is None and taken.validated
    assert taken.schedule == best.schedule or taken.no_gain
    assert len(irgym.history(PROGRAM)) == 1


def test_quick_and_a_search_are_refused_together():
    with pytest.raises(IrgymError, match="leave out seconds"):
        irgym.tune(PROGRAM, seconds=1.0, searching=irgym.Searching(quick=True))


def test_a_line_that_was_cut_off_is_left_out_and_a_damaged_one_named(own_cache: Path):
    irgym.tune(PROGRAM, searching=irgym.Searching(search="random", evaluations=4))
    path = History().path
    assert path.parent == own_cache
    whole = path.read_text()
    path.write_text(whole + whole[: len(whole) // 2])
    assert len(irgym.history(PROGRAM)) == 1
    path.write_text("{}\n")
    with pytest.raises(StorageError, match="no results"):
        irgym.history(PROGRAM)
    path.write_text("nonsense\n" + whole)
    with pytest.raises(StorageError, match="damaged at line 1"):
        irgym.history(PROGRAM)
