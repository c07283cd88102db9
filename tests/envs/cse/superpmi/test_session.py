"""SuperPMI's protocol, with a stand-in: no test runs a real SuperPMI."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from irgym.base.errors import BackendError, IrgymError, ProgramError
from irgym.envs.cse.superpmi.session import Collection, SuperPmi, replayed, request_of

Open = Callable[..., SuperPmi]


@pytest.fixture
def opened(make_collection: Callable[..., Collection]) -> Iterator[Open]:
    """Return a function that opens sessions with the stand-in; they are closed afterwards."""
    sessions: list[SuperPmi] = []

    def open_session(*arguments: str, timeout_s: float = 20.0, failures: int = 8) -> SuperPmi:
        sessions.append(SuperPmi(make_collection(*arguments, timeout_s=timeout_s), failures))
        return sessions[-1]

    yield open_session
    for session in sessions:
        session.close()


def test_requests():
    assert request_of(7, None) == "7!JitMetrics=1"
    assert request_of(7, []) == "7!JitMetrics=1!JitRLHook=1!JitRLHookEmitFeatureNames=1"
    assert request_of(7, [2, 0]).endswith("!JitRLHookCSEDecisions=2,0")
    with pytest.raises(BackendError, match="reads no request of"):
        request_of(7, range(1000))
    assert replayed([0, 9, 15]) == "JitReplayCSE=1,a,10"


def test_methods_are_compiled_as_told(opened: Open):
    session = opened()
    heuristic, none, some = session.compile(6, None), session.compile(6, []), session.compile(6, [4, 5])
    assert (heuristic.score, none.score, some.score) == (88.0, 106.0, 95.0)
    assert (heuristic.shared, none.shared, some.shared) == (6, 0, 2)
    assert [candidate["type"] for candidate in none.candidates] == list(range(6)) and some.sequence == (4, 5)


def test_a_method_that_is_not_there_costs_itself_only(opened: Open):
    session = opened("--methods", "10")
    for _ in range(3):
        with pytest.raises(ProgramError, match=r"did not compile method 11 of .*some\.mch"):
            session.compile(11, None)
        assert session.compile(10, None).index == 10


def test_faults_never_give_another_answer(opened: Open):
    session = opened("--faults", "0.4", timeout_s=0.5, failures=50)
    wrong = 0
    for index in range(1, 60):
        try:
            method = session.compile(index, [0])
        except IrgymError:
            wrong += 1
            continue
        assert method.index == index and method.score == 100.0 + index - (index % 7 > 0) + 3 * (
            index % 7 == 1
        )
    assert wrong < 30


def test_the_choice_of_the_jits_heuristic(opened: Open):
    assert opened().heuristic_choice(6) == (0, 1, 2, 3, 4, 5)
    assert opened("--from", "1").heuristic_choice(6) == (0, 1, 2, 3, 4, 5)
    assert opened("--from", "7").heuristic_choice(6) is None


@pytest.mark.parametrize("fault", ["die", "abort", "half", "garbage", "silence"])
def test_a_jit_that_never_works_is_refused(opened: Open, fault: str):
    session = opened("--faults", "1", "--only", fault, timeout_s=0.2, failures=2)
    for index in (1, 2):
        with pytest.raises(ProgramError, match=f"did not compile method {index}"):
            session.compile(index, None)
    with pytest.raises(BackendError, match=r"failed on 3 methods in a row .*: check that CORE_ROOT"):
        session.compile(3, None)


def test_a_missing_superpmi_is_named(tmp_path: Path):
    with pytest.raises(ProgramError, match=r"superpmi is not at .*superpmi: name CORE_ROOT and an MCH"):
        SuperPmi(Collection(tmp_path, tmp_path / "some.mch"))


@pytest.mark.skipif(
    not (os.environ.get("CORE_ROOT") and os.environ.get("IRGYM_MCH")),
    reason="set CORE_ROOT and IRGYM_MCH to run a real .NET JIT",
)
def test_a_real_jit():
    with SuperPmi(Collection(Path(os.environ["CORE_ROOT"]), Path(os.environ["IRGYM_MCH"]))) as session:
        heuristic, none = session.compile(1, None), session.compile(1, [])
        assert heuristic.hash == none.hash and none.shared == 0
