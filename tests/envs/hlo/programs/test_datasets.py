import pytest

from irgym.base.errors import ProgramError
from irgym.envs.hlo.programs.datasets import DATASETS, DEFAULT, TEST_FAMILIES, TEST_NUMERICS, dataset
from irgym.envs.hlo.programs.families import FAMILIES
from irgym.envs.hlo.programs.numeric_families import NUMERIC
from irgym.envs.hlo.programs.uris import parse_program

SHARED = {"gpt2": "layers", "bert": "layers", "resnet18": "depth", "mlp": "layers"}


def _families(uris: tuple[str, ...]) -> set[str]:
    return {parse_program(uri).family for uri in uris}


@pytest.mark.parametrize("name", DATASETS)
def test_programs_are_canonical_and_the_splits_disjoint(name: str):
    data = dataset(name)
    every = (*data.train, *data.test)
    assert data.name == name and data.test and data == dataset(name)
    assert len(set(every)) == len(every)
    assert [parse_program(uri).uri for uri in every] == list(every)


def test_the_default_is_large_and_leaves_families_to_the_test():
    data = dataset(DEFAULT)
    assert len(data.train) + len(data.test) >= 300
    train, test = _families(data.train), _families(data.test)
    assert test - train == set(TEST_FAMILIES)
    assert train & test == set(SHARED)
    assert train | test == set(FAMILIES)


def test_networks_and_other_code_make_up_the_default():
    data, networks, numerics = dataset(DEFAULT), dataset("networks"), dataset("numerics")
    assert data.train == (*networks.train, *numerics.train)
    assert data.test == (*networks.test, *numerics.test)
    assert (len(networks.train), len(networks.test)) == (288, 183)
    assert (len(numerics.train), len(numerics.test)) == (248, 118)


def test_other_code_leaves_whole_families_to_the_test():
    data = dataset("numerics")
    train, test = _families(data.train), _families(data.test)
    assert test == set(TEST_NUMERICS)
    assert not train & test and train | test == set(NUMERIC)
    assert not (_families(dataset("networks").train) | _families(dataset("networks").test)) & set(NUMERIC)


@pytest.mark.parametrize(("family", "depth"), SHARED.items())
def test_families_of_both_splits_differ_in_depth(family: str, depth: str):
    def depths(uris: tuple[str, ...]) -> set[object]:
        programs = [parse_program(uri) for uri in uris]
        # A loop over layers is the same at any depth: it is checked below.
        return {
            program.options[depth]
            for program in programs
            if program.family == family and not program.options.get("scan")
        }

    data = dataset(DEFAULT)
    assert depths(data.train) and depths(data.test)
    assert not depths(data.train) & depths(data.test)


def test_no_family_has_scans_in_both_splits():
    data = dataset(DEFAULT)

    def scanned(uris: tuple[str, ...]) -> set[str]:
        return {program.family for program in map(parse_program, uris) if program.options.get("scan")}

    assert not scanned(data.train) & scanned(data.test)


def test_gpt2_and_bert_are_in_the_test():
    uris = dataset(DEFAULT).test
    assert sum(uri.startswith("hlo://gpt2") for uri in uris) >= 15
    assert sum(uri.startswith("hlo://bert") for uri in uris) >= 10
    assert dataset("gpt2").test == tuple(uri for uri in uris if uri.startswith("hlo://gpt2"))


def test_small_and_published_sizes():
    assert (len(dataset("tiny").train), len(dataset("tiny").test)) == (8, 4)
    assert not dataset("full").train
    assert _families(dataset("full").test) == set(FAMILIES)
    assert all("shape=full" in uri for uri in dataset("full").test)


def test_an_unknown_name_says_what_exists():
    with pytest.raises(ProgramError, match="families, networks, numerics, gpt2, tiny, full"):
        dataset("nope")
