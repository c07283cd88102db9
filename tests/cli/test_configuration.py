"""Options from files: the forms, the precedence, the run folder as a file, and what unknown names meant."""

import json
import sys
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import pytest
from commands import Command
from tyro.conf import OmitArgPrefixes, Positional

from irgym.agents import AGENTS
from irgym.api.requests import Measuring
from irgym.api.translations import TRANSLATIONS, meant
from irgym.cli.commands import SUMMARIES, command_class, parsed
from irgym.cli.configuration import configured, with_config
from irgym.cli.train import Train

pytest.importorskip("torch")

DATASET = "mm_random:count=8,low=8,high=24,seed=1"
VALUES = {
    "environment": "loops",
    "run": "folder",
    "seed": 3,
    "resume": True,
    "observation": ["features", "target"],
    "limit": None,
    "set": {"lr": 1e-4, "hidden": [8, 8], "shared": True, "value_clip": None},
}
TOML = """
environment = "loops"
run = "folder"
seed = 3
observation = ["features", "target"]
[training]
resume = true
[set]
lr = 1e-4
hidden = [8, 8]
shared = true
value_clip = "none"
"""
YAML = """
environment: loops
run: folder
seed: 3
observation: [features, target]
training: {resume: true, limit: null}
hyperparameters: ["lr=0.0001", "hidden=8,8", shared=true, value_clip=none]
"""


def written(path: Path, values: Any) -> Path:
    path.write_text(values if isinstance(values, str) else json.dumps(values))
    return path


def train(*words: object) -> Train:
    command = parsed(["train", *map(str, words)])
    assert isinstance(command, Train)
    return command


@pytest.mark.parametrize(("name", "text"), [("a.json", VALUES), ("a.toml", TOML), ("a.yaml", YAML)])
def test_all_forms_mean_the_same(tmp_path: Path, name: str, text: Any):
    command = train("--config", written(tmp_path / name, text))
    assert (command.environment, command.folder, command.seed) == ("loops", Path("folder"), 3)
    assert command.training.resume and command.training.limit is None
    assert command.training.observation == "features,target"
    assert command.set == ("lr=0.0001", "hidden=8,8", "shared=true", "value_clip=none")


def test_the_command_line_takes_precedence(tmp_path: Path):
    file = written(tmp_path / "a.json", VALUES)
    command = train("linalg", "--set", "lr=1", "gamma=1", "--no-resume", f"--config={file}", "--seed=5")
    assert (command.environment, command.seed, command.training.resume) == ("linalg", 5, False)
    assert set(command.set) == {"lr=1", "gamma=1", "hidden=8,8", "shared=true", "value_clip=none"}
    assert train("hlo", "--run", "other", "--config", file).folder == Path("other")


@dataclass(frozen=True)
class Planted:
    """A command with an option of each kind."""

    uri: Positional[str]
    """One."""
    names: tuple[str, ...] = ()
    """Some."""
    measuring: OmitArgPrefixes[Measuring] = field(default_factory=Measuring)


def test_positional_words_after_a_list_of_values_stay_apart(tmp_path: Path):
    file = written(tmp_path / "a.json", {"names": ["a", "b"], "target": ["x", "y"]})
    words = ["--config", str(file), "--", "--odd"]
    merged, _ = configured("planted", with_config(Planted), words)
    assert merged == ["--config", str(file), "--names", "a", "b", "--target=x,y", "--", "--odd"]


def test_every_command_takes_a_file():
    for name in SUMMARIES:
        assert "config" in {option.name for option in fields(with_config(command_class(name)))}


def test_a_run_folder_repeats_and_resumes_its_run(irgym: Command, tmp_path: Path):
    run = tmp_path / "run"
    file = {"dataset": DATASET, "iterations": 1, "set": {"episodes": 4, "hidden": [8], "value_clip": 0.5}}
    begun = irgym("train", "loops", "--run", run, "--seed", 3, "--config", written(tmp_path / "a.json", file))
    assert begun.code == 0, begun.err
    first = json.loads((run / "config.json").read_text())
    assert (first["budget_iterations"], first["config"]["iterations"]) == (1, 1)
    assert irgym("train", "--resume", "--run", run, "--iterations", 2).out.count("\niteration") == 1
    last = json.loads((run / "config.json").read_text())
    assert last == first | {"budget_iterations": 2}, "annealing keeps its length"
    assert irgym("train", "--resume", "--run", run).out.count("\niteration") == 0
    refused = irgym("train", "--resume", "--run", run, "--seed", 4)
    assert refused.code == 2 and "seed = 3, not 4" in refused.err
    again = irgym("train", "--config", run, "--run", tmp_path / "again", "--iterations", 1)
    assert again.code == 0, again.err
    repeated = json.loads((tmp_path / "again" / "config.json").read_text())
    assert repeated["config"] == first["config"] and repeated["dataset"] == DATASET


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.ini", "", "is no configuration file: name one that ends in .json"),
        ("a.json", "{", "is malformed"),
        ("a.toml", "a = ", "is malformed"),
        ("a.yaml", "a: [", "is malformed"),
        ("a.json", "[1]", "holds no names with values"),
        ("a.yaml", "1: 2", "holds no names with values"),
        (
            "a.json",
            {"iteratons": 3, "bench_count": 4, "odd": 1},
            "did you mean --iterations?",
        ),
        ("a.json", {"bench_count": 4}, "bench_count (it is episodes here); hyper-parameters go under set"),
        (
            "a.json",
            {"set": {"bench_count": 4}},
            "hyper-parameter of ppo: it is episodes here",
        ),
        ("a.json", {"set": {"epoch": 4}}, "did you mean epochs?"),
        ("a.json", {"set": 3}, "set holds hyper-parameters by name, not 3"),
        ("a.json", {"resume": 1}, "resume cannot be 1: write true or false"),
        ("a.json", {"seed": {"a": 1}}, "seed"),
    ],
)
def test_bad_files_get_one_sentence(irgym: Command, tmp_path: Path, name: str, text: Any, words: str):
    file = written(tmp_path / name, text)
    result = irgym("train", "loops", "--run", tmp_path / "run", "--config", file)
    assert result.code == 2 and words in result.err and result.err.count("\n") == 1
    assert not (tmp_path / "run").exists()


def test_missing_files_and_packages(irgym: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    assert "there is no file" in irgym("envs", "--config", tmp_path / "none.json").err
    monkeypatch.setitem(sys.modules, "yaml", None)
    file = written(tmp_path / "a.yaml", "seed: 1")
    assert "pip install 'irgym[yaml]'" in irgym("train", "loops", "--config", file).err


def test_translations_lead_to_names_that_exist():
    parameters = {option.name for name in AGENTS.builtin for option in fields(AGENTS.load(name))}  # pyright: ignore
    flags = {"--run"} | {
        f"--{option.name}"
        for request in (Train, *(kind.default_factory for kind in fields(Train)))
        if isinstance(request, type)
        for option in fields(request)
    }
    for translation in TRANSLATIONS:
        assert translation.here in parameters | flags, translation
        # A name that exists here would never be translated.
        assert translation.there not in parameters, translation


def test_a_translation_suits_the_agent():
    assert meant("ppo_batch_size", (), {"minibatch", "lr"}) == "it is minibatch here"
    assert meant("ppo_batch_size", (), {"lr"}) == ""
