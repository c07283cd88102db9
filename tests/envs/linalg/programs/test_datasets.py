from collections import Counter

import pytest

from irgym.base.errors import ProgramError
from irgym.envs.linalg.compiling.contexts import mlir, parse
from irgym.envs.linalg.programs.datasets import DATASETS, DEFAULT, MIX, dataset
from irgym.envs.linalg.programs.operators import Operator
from irgym.envs.linalg.programs.uris import parse_uri


@pytest.mark.parametrize("name", DATASETS)
def test_programs_are_canonical_and_the_splits_disjoint(name: str):
    data = dataset(name)
    every = (*data.train, *data.test)
    assert data.name == name and data.train and data.test and data == dataset(name)
    assert (
        len({uri.partition("?")[0] for uri in data.train} & {uri.partition("?")[0] for uri in data.test}) == 0
    )
    assert len(set(every)) == len(every)
    assert [parse_uri(uri).uri for uri in every] == list(every)


def _families(uris: tuple[str, ...]) -> Counter[str]:
    return Counter(parse_uri(uri).family for uri in uris)


def test_the_default_has_the_published_mix():
    data = dataset(DEFAULT)
    assert _families(data.train) == MIX and len(data.train) == 2600
    test = _families(data.test)
    assert sum(test[name] for name in ("matmul", "conv2d", "maxpool", "add", "relu")) == 16
    assert sum(test[name] for name in ("resnet18", "mobilenetv2", "vgg11")) == test["lattice"] == 3
    assert sum(test.values()) == 22


@pytest.mark.parametrize("name", DATASETS)
def test_every_operator_parses(name: str):
    data = dataset(name)
    with mlir():
        for uri in (*data.train, *data.test):
            origin = parse_uri(uri).origin
            assert not isinstance(origin, Operator) or parse(origin.text()).operation.verify()


def test_an_unknown_name_says_what_exists():
    with pytest.raises(ProgramError, match="operators, tiny"):
        dataset("nope")
