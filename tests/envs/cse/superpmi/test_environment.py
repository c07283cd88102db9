"""The .NET JIT's methods through irgym's interface, with a stand-in for SuperPMI."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import irgym
from irgym.base.errors import IrgymError, ProgramError
from irgym.core.schedule import replay
from irgym.envs.cse.superpmi.environment import SuperPmiEnvironment
from irgym.envs.cse.superpmi.session import Collection
from irgym.envs.cse.superpmi.uris import parse_uri, uri_of


@pytest.fixture
def collection(
    make_collection: Callable[..., Collection], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Collection]:
    made = make_collection("--methods", "40")
    monkeypatch.setenv("CORE_ROOT", str(made.core_root))
    monkeypatch.setenv("IRGYM_MCH", str(made.mch))
    yield made


def test_uris(collection: Collection, monkeypatch: pytest.MonkeyPatch):
    whole = uri_of(6, collection)
    assert parse_uri("superpmi:6").uri == parse_uri(whole).uri == whole
    assert parse_uri(f"superpmi:6?mch={collection.mch}").collection.mch == collection.mch
    monkeypatch.delenv("CORE_ROOT")
    for uri, said in (
        ("superpmi:x", "names no method"),
        ("superpmi:0", "names no method"),
        ("superpmi:6?jit=x", "is no option"),
        ("superpmi:6?mch=a&mch=b", "given twice"),
        ("superpmi:6", "does not say core_root: write superpmi:NUMBER"),
    ):
        with pytest.raises(ProgramError, match=said):
            parse_uri(uri)


def test_a_method_is_tuned(collection: Collection, tmp_path: Path):
    result = irgym.tune("superpmi:6")
    assert result.cost == 106 - 6 - 5 - 4 - 3 - 2
    assert "compiles methods and runs none" in result.validation.blind
    [written] = result.export(tmp_path / "choice.txt")
    assert "JitReplayCSE=2,3,4,5,6" in written.read_text()


def test_the_pipeline_is_the_choice_of_the_jit(collection: Collection):
    environment = SuperPmiEnvironment()
    task = environment.task("superpmi:6")
    heuristic = replay(task, task.pipeline("cost-test"))
    assert heuristic == replay(task, task.pipeline("all"))  # the stand-in shares all
    with environment.bench() as bench:
        [measured] = bench.evaluator.evaluate([task.job(heuristic)])
    assert measured.cost == 88


def test_observations_have_a_row_for_each_candidate(collection: Collection):
    task = SuperPmiEnvironment().task("superpmi:6")
    seen = task.observe(task.initial())
    assert seen.candidates.shape == (len(task.names), 24) and np.isfinite(seen.candidates).all()
    later = task.step(task.initial(), task.schedule_of([1]).actions[0])
    assert len(task.observe(later).candidates) == len(task.names) - 1


def test_the_data_set(collection: Collection):
    environment = SuperPmiEnvironment()
    dataset = environment.dataset("collection")
    numbers = sorted(parse_uri(uri).index for uri in (*dataset.train, *dataset.test))
    assert numbers == [number for number in range(1, 41) if number % 7 >= 3]
    assert len(dataset.test) == 3 and environment.dataset_names() == ["collection"]


def test_bad_input(collection: Collection):
    environment = SuperPmiEnvironment()
    for uri, said in (
        ("superpmi:41", "did not compile method 41"),
        (f"superpmi:6?mch={collection.mch}x", "the MCH file is not at"),
    ):
        with pytest.raises(IrgymError, match=said):
            environment.task(uri)


def test_a_jit_that_prints_garbage(make_collection: Callable[..., Collection]):
    environment = SuperPmiEnvironment()
    broken = make_collection("--faults", "1", "--only", "garbage")
    with pytest.raises(IrgymError, match=r"did not compile method|in a row|Done"):
        environment.task(f"superpmi:6?core_root={broken.core_root}&mch={broken.mch}")
    quiet = make_collection("--methods", "2")
    with pytest.raises(IrgymError, match="lists no method with candidates"):
        environment.dataset(f"core_root={quiet.core_root}&mch={quiet.mch}")
