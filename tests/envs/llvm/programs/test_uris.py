"""URIs of modules, and the data sets of them."""

import pytest

from irgym.base.errors import ProgramError
from irgym.envs.llvm.programs.datasets import DATASETS, LEAST, MOST, dataset
from irgym.envs.llvm.programs.modules import modules
from irgym.envs.llvm.programs.uris import family_of, parse_uri
from irgym.llvmir.programs.files import function_of, kernels
from irgym.llvmir.programs.packages.pinned import packages_of


@pytest.mark.parametrize(
    ("uri", "said"),
    [
        ("llvm://kernels/nothing.c", r"names none of the kernels: choose one of bytes\.c, geometry\.c"),
        ("llvm://kernels/sorting.c#", r"names no function: write one after #"),
        ("llvm://kernels", r"is malformed: write llvm://kernels/sorting\.c"),
        ("llvm://kernel/sorting.c", r"there is no program family 'kernel' in llvm"),
        ("llvm://packages/lz4/lz4.c", r"names no file of the packages: choose one of lz4/lz4libs/lz4\.c"),
        ("llvm://packages/nothing/a.c", r"names no file of the packages: choose one of apsw|argon2|aubio"),
        ("llvm://packages/lz4/../lz4/lz4libs/lz4.c", r"names no file of the packages"),
        ("llvm://csmith?seed=-1", r"seed must be a whole number in 0 to"),
        ("llvm://csmith?sead=1", r"csmith has no option 'sead'; its options: seed"),
        ("llvm:missing.c", r"there is no such file"),
        ("llvm:missing.c#", r"names no part of the file"),
        ("llvm:missing.txt", r"llvm reads no such file; name it one of \*\.c, \*\.ll, \*\.bc"),
        ("llvm:", r"names no file: write llvm:FILE"),
        ("cse://kernels/sorting.c", r"is no llvm program: write llvm:FILE"),
    ],
)
def test_uris_that_name_nothing_are_refused(uri: str, said: str):
    with pytest.raises(ProgramError, match=said):
        parse_uri(uri)


def test_a_folder_is_no_program(tmp_path):
    folder = tmp_path / "folder.c"
    folder.mkdir()
    with pytest.raises(ProgramError, match="is a folder: name a file"):
        parse_uri(f"llvm:{folder}")


@pytest.mark.parametrize(
    ("uri", "family", "function"),
    [
        ("llvm://kernels/sorting.c", "sorting.c", ""),
        ("llvm://kernels/sorting.c#sift", "sorting.c", "sift"),
        ("llvm://packages/lz4/lz4libs/lz4.c", "lz4", ""),
        ("llvm://packages/lz4/lz4libs/lz4.c#LZ4_compress_fast", "lz4", "LZ4_compress_fast"),
        ("llvm://csmith?seed=7", "csmith", ""),
    ],
)
def test_parts_of_uris(uri: str, family: str, function: str):
    program = parse_uri(uri)
    assert (program.uri, family_of(program), function_of(program)) == (uri, family, function)


def test_the_kernels_are_split_by_file():
    found = dataset("kernels")
    assert sorted(found.all) == [f"llvm://kernels/{file}" for file in kernels()]
    assert not set(found.train) & set(found.test)


def test_the_packages_are_split_by_package():
    found = dataset("packages")
    families = {
        split: {family_of(parse_uri(uri)) for uri in found.split(split)} for split in ("train", "test")
    }
    assert not families["train"] & families["test"]
    assert len(families["test"]) >= 10 and len(found.test) >= 200 and len(found.train) >= 1000
    for split, names in families.items():
        assert {packages_of("llvm")[name].split for name in names} == {split}


def test_modules_of_the_data_set_are_neither_tiny_nor_huge():
    sizes = modules()
    for uri in dataset("packages").all:
        size = sizes[uri.removeprefix("llvm://packages/")]
        assert LEAST <= size.original <= MOST and size.reference > 0


def test_there_is_no_other_data_set():
    with pytest.raises(ProgramError, match=f"choose among {', '.join(DATASETS)}"):
        dataset("nothing")
