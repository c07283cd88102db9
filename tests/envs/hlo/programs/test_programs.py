from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from irgym.base.errors import ProgramError
from irgym.core.uri import Family, Value
from irgym.envs.hlo.environment import HLO
from irgym.envs.hlo.programs.families import FAMILIES
from irgym.envs.hlo.programs.uris import SUFFIXES, parse_program


@st.composite
def queries(draw: st.DrawFn) -> tuple[Family, dict[str, Value]]:
    """Draw a family and values of some of its options; sizes may be incompatible."""
    family = draw(st.sampled_from(list(FAMILIES.values())))
    chosen = draw(st.lists(st.sampled_from(family.options), unique_by=lambda parameter: parameter.name))
    values: dict[str, Value] = {}
    for parameter in chosen:
        if parameter.choices:
            values[parameter.name] = draw(st.sampled_from(parameter.choices))
        elif isinstance(parameter.default, bool):
            values[parameter.name] = draw(st.booleans())
        else:
            values[parameter.name] = draw(st.integers(parameter.low, parameter.high))
    return family, values


def _uri(family: Family, values: dict[str, Value]) -> str:
    words = [f"{name}={str(value).lower()}" for name, value in values.items()]
    return f"hlo://{family.name}?" + "&".join(words)


@given(queries())
def test_canonical_uris_are_fixed_points_that_keep_the_values(query: tuple[Family, dict[str, Value]]):
    family, values = query
    try:
        program = parse_program(_uri(family, values))
    except ProgramError as error:
        assert any(word in str(error) for word in ("multiple of", "exceed", "mode=train only"))
        return
    assert {name: program.options[name] for name in values} == values
    assert parse_program(program.uri) == program
    assert parse_program(_uri(family, dict(program.values))) == program


def test_the_canonical_form_is_sorted_and_without_defaults():
    assert parse_program("hlo://gpt2?mode=train&layers=1&dropout=0&width=64").uri == (
        "hlo://gpt2?dropout=false&layers=1"
    )
    assert parse_program("hlo://gpt2?").uri == "hlo://gpt2"
    assert parse_program("hlo://gpt2?shape=full&layers=12&width=96").uri == "hlo://gpt2?shape=full&width=96"


def test_full_shapes_are_the_published_ones():
    options = parse_program("hlo://gpt2?shape=full").options
    assert [options[name] for name in ("layers", "width", "heads", "vocabulary", "sequence")] == [
        12,
        768,
        12,
        50257,
        1024,
    ]


@pytest.mark.parametrize("family", FAMILIES.values(), ids=lambda family: family.name)
def test_defaults_fit_together(family: Family):
    for shape in ("tiny", "full"):
        program = parse_program(f"hlo://{family.name}?shape={shape}")
        assert program.options["shape"] == shape
        assert list(program.options) == [parameter.name for parameter in family.options]
    for parameter in family.options:
        for default in (parameter.default, *dict(parameter.presets).values()):
            if parameter.choices:
                assert default in parameter.choices
            else:
                assert isinstance(default, bool) or parameter.low <= int(default) <= parameter.high


@pytest.mark.parametrize(
    ("uri", "words"),
    [
        ("gpt2", "hlo://FAMILY"),
        ("loops://mm/4x4x4", "hlo://FAMILY"),
        ("hlo://", "choose among gpt2"),
        ("hlo://gpt3", "choose among gpt2"),
        ("hlo://gpt2/layers=1", "malformed"),
        ("hlo://gpt2?depth=1", "its options: mode, shape"),
        ("hlo://gpt2?layers", "name=value"),
        ("hlo://gpt2?layers=1&&scan=true", "name=value"),
        ("hlo://gpt2?layers=1&layers=2", "twice"),
        ("hlo://gpt2?layers=two", "whole number in 1 to 64"),
        ("hlo://gpt2?layers=-1", "whole number in 1 to 64"),
        ("hlo://gpt2?layers=10000", "whole number in 1 to 64"),
        ("hlo://gpt2?layers=\u0661", "whole number in 1 to 64"),
        ("hlo://gpt2?mode=backward", "train or forward"),
        ("hlo://decode?mode=train", "must be forward"),
        ("hlo://gpt2?dropout=maybe", "true or false"),
        ("hlo://gpt2?width=63", "multiple of heads (4)"),
        ("hlo://llama?width=68&heads=4", "multiple of 2 times heads (4)"),
        ("hlo://vit?pixels=33", "multiple of patch (8)"),
        ("hlo://moe?top=3&experts=2", "may not exceed experts (2)"),
        ("hlo://gpt2?mode=forward&optimizer=sgd", "mode=train only"),
        ("hlo:", "names no file"),
        ("hlo:model.onnx", "name it one of *.hlo"),
        ("hlo:missing.hlo.txt", "no such file"),
    ],
)
def test_mistakes_are_reported_in_one_sentence(uri: str, words: str):
    with pytest.raises(ProgramError) as caught:
        parse_program(uri)
    assert words in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("suffix", [*SUFFIXES, ".hlo.txt", ".hlo.pb", ".PB"])
def test_files_keep_their_path_as_given(tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / f"graph{suffix}").write_text("")
    monkeypatch.chdir(tmp_path)
    for text in (f"graph{suffix}", f"./graph{suffix}", f"{tmp_path}/graph{suffix}"):
        program = parse_program(f"hlo:{text}")
        assert (program.uri, program.family, program.path) == (f"hlo:{text}", "", Path(text))


def test_data_sets_hold_only_files_that_can_be_read(tmp_path: Path):
    file = tmp_path / "broken.hlo"
    file.write_text("HloModule m\nENTRY e {\n")
    with pytest.raises(ProgramError, match="cannot read it as HLO text"):
        HLO.programs_of(f"hlo:{file}")


def test_a_folder_is_no_program(tmp_path: Path):
    (tmp_path / "graph.hlo").mkdir()
    with pytest.raises(ProgramError, match="is a folder"):
        parse_program(f"hlo:{tmp_path}/graph.hlo")
