"""A policy on the methods of a JIT CSE gymnasium, beside the heuristic; failures are told, not hidden."""

import csv
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnasium
import numpy as np
import pytest
from cse_table import Table

from irgym.api import jit_cse
from irgym.base.errors import IrgymError
from irgym.cli.main import main
from irgym.envs.cse.jitcse.env import JitCseEnv
from irgym.envs.cse.jitcse.wrappers import RemoveFeaturesWrapper


def taking(*actions: int) -> Any:
    """A policy that takes these actions, then stops."""

    def begin() -> Any:
        waiting = iter(actions)
        return lambda observation, mask: next(waiting, len(mask) - 1)

    return begin


@pytest.mark.parametrize(
    ("actions", "ratio", "counts"),
    [((3, 0), 90 / 70, (1, 0)), ((1, 0), 1.0, (0, 0)), ((2,), 90 / 105, (0, 1))],
)
def test_scores_are_held_against_the_heuristic(actions, ratio, counts):
    found = JitCseEnv(["some", "other"], Table).evaluate(taking(*actions))
    assert found.ratios == [pytest.approx(ratio)] * 2 and found.mean == pytest.approx(ratio)
    assert (found.count(better=True), found.count(better=False)) == (2 * counts[0], 2 * counts[1])
    assert found.results[0].chosen == actions and not found.failures


def test_the_mean_is_geometric():
    env = JitCseEnv(["some", "other"], Table)
    begun = iter([taking(3, 0), taking(2)])
    found = env.evaluate(lambda: next(begun)())
    assert found.mean == pytest.approx(np.sqrt(90 / 70 * 90 / 105))


def test_failures_of_the_compiler_are_told(tmp_path: Path):
    found = JitCseEnv(["some", "broken"], Table).evaluate(taking(0, 4))
    assert [result.method for result in found.failures] == ["some"]
    assert [result.method for result in found.left_out] == ["broken"]
    assert found.mean is None
    assert "0 methods: 0 improved, 0 regressed, 0 unchanged, 1 failed; 1 others" in found.text
    assert "some: the compiler failed with 4 shared after [0]" in found.text and "broken: it is" in found.text
    found.write_csv(tmp_path / "results.csv")
    rows = list(csv.DictReader((tmp_path / "results.csv").read_text().splitlines()))
    assert [row["method"] for row in rows] == ["some", "broken"] and rows[0]["heuristic"] == "90.0"
    assert json.loads(json.dumps(found.to_json()))["geometric_mean"] is None


def test_invalid_actions_are_told_apart_from_failures_of_the_compiler():
    found = JitCseEnv(["some"], Table).evaluate(lambda: lambda observation, mask: len(mask) - 1)
    assert found.results[0].failure == "the policy chose 20 invalid actions after []"


def test_the_number_of_candidates_may_be_limited_otherwise():
    env = JitCseEnv(["some"], Table, max_cse=4)
    assert env.observation_space.shape == (4, 22) and env.action_space == gymnasium.spaces.Discrete(5)
    with pytest.raises(IrgymError, match="of candidates is 5: name one with 3 to 4, or set max_cse=5"):
        env.reset(options={"method": "some"})
    assert JitCseEnv(["broken", "some"], Table, max_cse=5).usable() == ["some"]
    assert JitCseEnv(["broken", "some"], Table, max_cse=4).usable() == []
    with pytest.raises(IrgymError, match="max_cse is 2: give a whole number of at least 3"):
        JitCseEnv(["some"], Table, max_cse=2)


def test_a_model_is_evaluated_by_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    library = pytest.importorskip("stable_baselines3")
    uri = "cse://kernels/sorting.c#insertion_sort"
    file = tmp_path / "model.zip"
    library.PPO("MlpPolicy", JitCseEnv([uri]), seed=0, device="cpu").save(file)
    results = tmp_path / "results.json"
    command = ["evaluate", f"sb3:{file}", "--environment", "irgym/JitCse-v0", "--limit", "2"]
    main([*command, "--json", str(results)])
    assert "geometric mean of heuristic score / policy score" in capsys.readouterr().out
    assert len(json.loads(results.read_text())["methods"]) == 2
    library.PPO("MlpPolicy", RemoveFeaturesWrapper(JitCseEnv([uri])), seed=0, device="cpu").save(file)
    with pytest.raises(SystemExit):
        main(command)
    assert "the wrappers of its training by --wrap" in capsys.readouterr().err
    wrapper = "irgym.envs.cse.jitcse.wrappers:RemoveFeaturesWrapper"
    main([*command, "--wrap", wrapper, "--json", str(results)])
    assert len(json.loads(results.read_text())["methods"]) == 2


@pytest.mark.parametrize(
    ("wrapper", "words"),
    [
        ("RemoveFeaturesWrapper", "names no wrapper: write package.module:Class"),
        ("irgym.envs.cse.jitcse.wrappers:Wrapper", "has no Wrapper"),
        ("irgym.nowhere:Wrapper", "no module of that name"),
        ("gymnasium.wrappers:TimeLimit", "raised TypeError"),
        ("os.path:dirname", "raised TypeError"),
        ("unittest.mock:call", "returns _Call, no environment"),
        ("gymnasium.utils:seeding", "has no seeding"),
    ],
)
def test_bad_wrappers_are_refused_in_one_sentence(wrapper: str, words: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(jit_cse, "network_of", lambda model: SimpleNamespace(inputs=1, outputs=17))
    with pytest.raises(IrgymError, match=words):
        jit_cse.evaluate_jit_cse(None, wrappers=[wrapper])
