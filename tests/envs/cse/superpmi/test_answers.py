"""Lines of metrics from the .NET JIT."""

import pytest

from irgym.envs.cse.superpmi.answers import FEATURES, FEATURES_2024, AnswerError, method_of, read

BEGIN = (
    "; Total bytes of code 42, prolog size 4, PerfScore 12.50, instruction count 8, "
    "allocated bytes for code 42"
)
END = " spmi index 4321 (MethodHash=cafeBABE) for method Foo:Baz(int,System.String):int (Tier1)"


def row(count: int) -> str:
    """Return a number of features of a candidate."""
    return ",".join(str(number) for number in range(count))


def test_a_line_with_names_is_read_by_them():
    told = f", num cse 1 num cand 2 featureNames a,b features #0,7,-1 features #1,8,0 seq 1{END}"
    method = read(BEGIN + told)
    assert (method.index, method.name, method.tier) == (4321, "Foo:Baz(int,System.String):int", "Tier1")
    assert (method.score, method.bytes, method.instructions, method.hash) == (12.5, 42, 8, "cafebabe")
    assert method.candidates == ({"a": 7, "b": -1}, {"a": 8, "b": 0})
    assert (method.shared, method.count, method.sequence, method.heuristic) == (1, 2, (1,), "")


@pytest.mark.parametrize("names", [FEATURES, FEATURES_2024])
def test_without_names_the_number_of_features_decides_the_form(names: tuple[str, ...]):
    method = read(f"{BEGIN}, num cse 0 num cand 1 features #0,{row(len(names))}{END}")
    assert dict(method.candidates[0]) == {name: place for place, name in enumerate(names)}


def test_the_jit_names_its_own_heuristic():
    method = read(f"{BEGIN}, num cse 3 num cand 9 Standard CSE Heuristic{END}")
    assert (method.heuristic, method.shared, method.count, method.candidates) == (
        "Standard CSE Heuristic",
        3,
        9,
        (),
    )


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("; Total bytes of code 42, and then nothing", "a form that irgym does not know"),
        (f"{BEGIN}, num cse 0 num cand 2 features #0,{row(22)}{END}", "tells of 1 candidates of 2"),
        (f"{BEGIN}, num cse 0 num cand 1 features #0,1,2{END}", "tells 2 features of a candidate"),
        (f"{BEGIN.replace('12.50', '1.2.3')}, num cse 0 num cand 0{END}", "a score that is no number"),
    ],
)
def test_other_lines_are_refused(line: str, said: str):
    with pytest.raises(AnswerError, match=said):
        read(line)


def test_an_answer_is_about_a_single_method():
    line = f"{BEGIN}, num cse 0 num cand 0{END}"
    assert method_of(["something else"]) is None
    assert method_of(["something else", line]) == read(line)
    with pytest.raises(AnswerError, match="2 methods"):
        method_of([line, line])
