from pathlib import Path

import pytest

from irgym.base.errors import ProgramError
from irgym.envs.graph.programs.datasets import DATASETS, DEFAULT, X_RLFLOW, dataset
from irgym.envs.graph.programs.families import CONVOLUTIONAL, FAMILIES, PACKAGES, RECURRENT, TRANSFORMERS
from irgym.envs.graph.programs.uris import parse_program


@pytest.mark.parametrize(
    ("uri", "canonical"),
    [
        ("graph://bert", "graph://bert"),
        ("graph://bert?", "graph://bert"),
        ("graph://bert?layers=4&sequence=032", "graph://bert?sequence=32"),
        ("graph://vit_b_16?size=96&layers=12", "graph://vit_b_16?layers=12&size=96"),
        ("graph://emformer?right=0&left=0", "graph://emformer?left=0&right=0"),
    ],
)
def test_equal_programs_have_the_same_text(uri: str, canonical: str):
    program = parse_program(uri)
    assert program.uri == canonical and parse_program(canonical) == program
    assert program.path is None and program.bindings == ()


@pytest.mark.parametrize(
    ("uri", "words"),
    [
        ("bert", "is no graph program: write graph://FAMILY?name=value&... or graph:FILE.onnx?"),
        ("graph://bart", "no program family 'bart'"),
        ("graph://bert/4", "with no whole numbers"),
        ("graph://bert?size=4", "bert has no option 'size'; its options: layers, hidden, heads, batch"),
        ("graph://bert?heads=7", "hidden (512) must be a multiple of heads (7)"),
        ("graph://bert?layers=0", "layers must be a whole number in 1 to 64"),
        ("graph://vit_b_16?size=100", "a multiple of 16"),
        ("graph://inception_v3?size=64", "size must be a whole number in 75 to 2048"),
        ("graph:model.pb", "name it *.onnx"),
        ("graph:missing.onnx?batch=1", "there is no such file"),
    ],
)
def test_a_wrong_uri_is_refused_in_one_sentence(uri: str, words: str):
    with pytest.raises(ProgramError) as caught:
        parse_program(uri)
    assert words in str(caught.value) and "\n" not in str(caught.value)


def test_a_file_has_its_dimensions_bound(tmp_path: Path):
    file = tmp_path / "model.onnx"
    file.write_bytes(b"")
    program = parse_program(f"graph:{file}?sequence=128&batch=1")
    assert program.uri == f"graph:{file}?batch=1&sequence=128"
    assert program.bindings == (("batch", 1), ("sequence", 128)) and program.path == file


@pytest.mark.parametrize("family", FAMILIES.values(), ids=str)
def test_every_family_has_its_defaults_and_its_least_sizes(family):
    assert parse_program(f"graph://{family.name}").family == family.name
    assert FAMILIES[family.name] is family and family.summary
    if any(option.name == "size" for option in family.options):
        [size] = [option for option in family.options if option.name == "size"]
        assert parse_program(f"graph://{family.name}?size={size.low}").numbers["size"] == size.low


def test_summaries_name_the_package_that_has_the_models():
    for name, family in FAMILIES.items():
        named = [package for package in ("torchvision", "transformers") if package in family.summary]
        assert named == ([PACKAGES[name]] if name in PACKAGES else [])


@pytest.mark.parametrize("name", DATASETS)
def test_data_sets_are_canonical(name: str):
    data = dataset(name)
    assert data == dataset(name) and data.name == name and data.train and data.test
    for split in (data.train, data.test):
        assert len(set(split)) == len(split)
        assert [parse_program(uri).uri for uri in split] == list(split)
    assert name == "x-rlflow" or not set(data.train) & set(data.test)


def _families(uris: tuple[str, ...]) -> set[str]:
    return {parse_program(uri).family for uri in uris}


def test_the_default_trains_on_other_architectures_than_it_tests():
    data = dataset(DEFAULT)
    train, test = _families(data.train), _families(data.test)
    assert not train & test and train | test == set(FAMILIES)
    for kind in (CONVOLUTIONAL, TRANSFORMERS, RECURRENT):
        names = {family.name for family in kind}
        assert names & train and names & test


def test_other_sizes_are_of_the_same_architectures():
    data = dataset("sizes")
    assert _families(data.train) == _families(data.test) == set(X_RLFLOW)
    assert _families(dataset("x-rlflow").train) == set(X_RLFLOW) and len(X_RLFLOW) == 8


def test_there_is_no_other_data_set():
    with pytest.raises(ProgramError, match="no data set 'large': choose among models, x-rlflow, sizes, tiny"):
        dataset("large")
