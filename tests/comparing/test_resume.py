"""Resuming a comparison: only rows that it would have measured itself are taken over."""

import dataclasses
import json

import pytest
from observers import Given, Kept

from irgym.base.errors import IrgymError
from irgym.comparing import basis
from irgym.comparing.basis import Basis, basis_of
from irgym.comparing.comparison import ComparisonPlan, run_comparison
from irgym.comparing.results import Comparison
from irgym.search.budget import Budget

METHODS = ["base", "random", "policy:mine", "guided:mine"]
URIS = ["toy://easy", "toy://hard"]


@pytest.fixture
def compare(environment, bench, load_policy):
    def run(done=None, uris=URIS, identify=lambda name, _: f"digest of {name}", **options):
        seen = Kept()
        if done is not None:
            done = Comparison.from_json(json.loads(json.dumps(done.to_json())))  # as it comes from a file
        plan = ComparisonPlan(environment, tuple(uris), tuple(METHODS), Budget(8), **options)
        comparison = run_comparison(plan, bench, Given(load_policy, identify), seen, done)
        return comparison, seen.computed, seen.said

    return run


def test_rows_of_the_same_basis_are_taken_over(compare):
    first, _, _ = compare()
    again, computed, said = compare(first)
    assert computed == said == []
    assert again.rows == first.rows and again.traces == first.traces
    assert all(row.basis.machine and row.basis.sources and row.basis.toolchain for row in first.rows)


@pytest.mark.parametrize(
    ("part", "words"),
    [
        ("machine", "another machine or other limits"),
        ("sources", "another version of irgym"),
        ("libraries", "other versions of libraries"),
        ("toolchain", "another toolchain"),
        ("target", "another target"),
        ("policy", "another policy"),
    ],
)
def test_rows_of_another_basis_are_computed_again_and_it_is_said(compare, part, words):
    first, _, _ = compare()
    stale = dataclasses.replace(first.rows[2].basis, **{part: "another"})
    assert first.rows[2].method == "policy:mine"
    rows = [
        dataclasses.replace(row, basis=stale) if place == 2 else row for place, row in enumerate(first.rows)
    ]
    again, computed, said = compare(dataclasses.replace(first, rows=tuple(rows)))
    assert computed == [(URIS[0], "policy:mine")]
    assert said == [f"1 of 10 earlier results are of {words}, and computed again"]
    assert again.rows[2].basis == first.rows[2].basis


def test_the_machine_the_bench_and_the_policy_are_looked_at(compare, bench, monkeypatch):
    first, _, _ = compare()
    _, computed, said = compare(first, identify=lambda name, _: "changed")
    assert {method for _, method in computed} == {"policy:mine", "guided:mine"}
    assert said == ["6 of 10 earlier results are of another policy, and computed again"]
    _, computed, said = compare(first, identify=lambda name, _: None)
    assert len(computed) == 4 and "policies that cannot be told apart" in said[0]
    monkeypatch.setattr(type(bench), "conditions", "elsewhere")
    _, computed, said = compare(first)
    assert len(computed) == 8 and "another machine" in said[0]


def test_a_policy_that_is_trained_meanwhile_is_the_one_that_was_loaded(compare):
    digests = iter(["1", "1", "1", "1"] + ["2"] * 20)  # before and after each of two is loaded
    first, _, _ = compare(identify=lambda name, _: next(digests))
    assert {row.basis.policy for row in first.rows} == {"", "1"}
    digests = iter(str(number) for number in range(20))
    first, _, _ = compare(identify=lambda name, _: next(digests))
    assert {row.basis.policy for row in first.rows} == {""}, "nobody knows which one was loaded"
    assert len(compare(first)[1]) == 4


def test_rows_without_a_basis_are_computed_again(compare):
    first, _, _ = compare(uris=URIS[:1])
    rows = tuple(dataclasses.replace(row, basis=Basis()) for row in first.rows)
    again, computed, said = compare(dataclasses.replace(first, rows=rows), uris=URIS[:1])
    assert len(computed) == 4 and len(said) == 1 and "\n" not in said[0]
    assert {trace.method for trace in again.traces} == {"random", "guided:mine"}


def test_other_options_are_refused(compare):
    first, _, _ = compare()
    with pytest.raises(IrgymError, match="validation_inputs = 3, not 2: resume them with the options"):
        compare(first, validation_inputs=2)


def test_edited_sources_and_other_libraries_make_another_basis(environment, bench, monkeypatch):
    task = environment.task(URIS[0])
    before = basis_of(environment, bench, task)
    monkeypatch.setattr(basis, "hash_of", lambda files, root: "edited")
    basis._source_digest.cache_clear()
    edited = basis_of(environment, bench, task)
    monkeypatch.setattr(basis, "_version", lambda name: "99")
    basis._library_digest.cache_clear()
    newer = basis_of(environment, bench, task)
    basis._source_digest.cache_clear()
    basis._library_digest.cache_clear()
    assert before.differences(edited) == ["another version of irgym"]
    assert edited.differences(newer) == ["other versions of libraries"]


def test_the_sources_of_irgym_are_all_in_the_digest():
    names = {path.name for path in basis.files_of(["."], basis.ROOT)}
    assert {"timing.py", "comparison.py", "evolutionary.py", "engine.cc"} <= names
