"""Comparing from Python: the same value as the command's JSON, kept in files and resumed."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from observers import Kept
from passes import URIS

import irgym
from irgym.base.errors import IrgymError
from irgym.cli.main import main
from irgym.comparing.results import Comparison
from irgym.search.strategies.beam import Beam
from irgym.search.strategies.greedy import Greedy

METHODS = ("base", "core", "greedy")


def test_compare_gives_what_the_command_writes(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    ours = irgym.compare(
        "passes", URIS[:2], comparing=irgym.Comparing(evaluations=20, also=("time",))
    ).to_json()
    file = tmp_path / "c.json"
    main(["compare", "passes", "--programs", *URIS[:2], "--evaluations", "20", "--time", "--json", str(file)])
    theirs = json.loads(file.read_text())
    for data in (ours, theirs):
        del data["traces"], data["settings"]["date"]
        for part in (*data["rows"], *data["summary"].values()):
            part.pop("seconds", None)
    assert ours == theirs and [row["method"] for row in ours["rows"]] == [*METHODS, *METHODS]


def test_the_baselines_ratio_has_one_key():
    data = irgym.compare(
        "loops", ["loops://mm/8x8x8"], methods=("base",), comparing=irgym.Comparing(validation_inputs=0)
    ).to_json()
    assert data["baseline"] == "numpy" and data["rows"][0]["baseline_ratio"] > 0
    assert data["summary"]["base"]["baseline_ratio"]["mean"] > 0


def test_results_are_kept_and_resumed(tmp_path: Path):
    file, first, second = tmp_path / "c.json", Kept(), Kept()
    comparing = irgym.Comparing(evaluations=20, json=file)
    irgym.compare("passes", URIS[:1], methods=METHODS, observer=first, comparing=comparing)
    resumed = replace(comparing, resume=True)
    whole = irgym.compare("passes", URIS[:2], methods=METHODS, observer=second, comparing=resumed)
    assert first.computed == [(URIS[0], method) for method in METHODS]
    assert second.computed == [(URIS[1], method) for method in METHODS]
    assert Comparison.from_json(json.loads(file.read_text())) == whole


def test_programs_by_split_and_one_alone():
    few = irgym.compare("passes", methods=("base",), comparing=irgym.Comparing(limit=2))
    assert few.programs == [URIS[0], URIS[2]] and few.machine == "a toy"
    assert irgym.compare("passes", URIS[1], methods=("base",)).programs == [URIS[1]]  # pyright: ignore


def test_a_comparison_without_a_file_cannot_be_resumed():
    with pytest.raises(IrgymError, match="name their file"):
        irgym.compare("passes", URIS[:1], comparing=irgym.Comparing(resume=True))


def test_methods_take_options_and_may_be_strategies(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    methods = ["base", "beam:width=2,order=breadth", "beam:width=1", Beam(width=3), Greedy()]
    found = irgym.compare("passes", URIS[:1], methods=methods, comparing=irgym.Comparing(evaluations=30))
    names = ["base", "beam:width=2,order=breadth", "beam:width=1", "beam:width=3", "greedy"]
    assert [row.method for row in found.rows] == names
    for words in (names, [",".join(names)]):
        file = tmp_path / f"{len(words)}.json"
        quick = ("--programs", URIS[0], "--evaluations", "30", "--json", str(file))
        main(["compare", "passes", *quick, "--methods", *words])
        theirs = json.loads(file.read_text())["rows"]
        assert [(row["method"], row["cost"]) for row in theirs] == [
            (row.method, row.cost) for row in found.rows
        ]
    with pytest.raises(IrgymError, match="is no search"):
        irgym.compare("passes", URIS[:1], methods=["base", Beam])  # pyright: ignore
