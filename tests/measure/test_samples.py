"""Samples of inputs are read without trusting their files."""

import io
import pickle
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from irgym.base.errors import ProgramError
from irgym.measure.samples import MOST, UNNAMED, Given, checked, digest_at, packed, samples_at, stored

ARRAYS = {
    "x": np.arange(6, dtype=np.float32).reshape(2, 3),
    "model/ids:0": np.array(7),
    "turned": np.asfortranarray(np.arange(6, dtype=">i4").reshape(2, 3)),
    "empty": np.zeros((0, 2), np.bool_),
}


def test_what_numpy_writes_is_read(tmp_path: Path):
    np.savez_compressed(tmp_path / "packed.npz", **ARRAYS)
    np.savez(tmp_path / "plain.npz", **ARRAYS)
    for file in tmp_path.iterdir():
        [sample] = samples_at(file)
        assert sample.name == file.name and sample.arrays.keys() == ARRAYS.keys()
        for name, array in ARRAYS.items():
            found = sample.arrays[name]
            assert np.array_equal(found, array) and found.dtype == array.dtype.newbyteorder("=")
            assert found.flags.c_contiguous and found.dtype.isnative


def test_a_folder_holds_a_sample_in_each_file_in_order(tmp_path: Path):
    for name in ("2.npz", "10.npz"):
        np.savez(tmp_path / name, x=np.zeros(1))
    np.save(tmp_path / "3.npy", np.ones(2))
    (tmp_path / "README").write_text("mine")
    (tmp_path / "._2.npz").write_bytes(b"a file of macOS")
    (tmp_path / "folder.d").mkdir()
    assert [(sample.name, *sample.arrays) for sample in samples_at(tmp_path)] == [
        ("10.npz", "x"),
        ("2.npz", "x"),
        ("3.npy", UNNAMED),
    ]


PAYLOAD = "payload-ran"
"""File, in the folder of the process, that a payload makes."""


class Payload:
    def __reduce__(self) -> Any:
        return open, (PAYLOAD, "w")


def npy(array: Any) -> bytes:
    content = io.BytesIO()
    np.lib.format.write_array(content, np.asarray(array), allow_pickle=True)
    return content.getvalue()


def archive(**entries: bytes) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as file:
        for name, data in entries.items():
            file.writestr(name.replace("__", "."), data)
    return content.getvalue()


def claiming(shape: str) -> bytes:
    """Return an .npy file whose header claims a shape."""
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return np.lib.format.MAGIC_PREFIX + b"\x01\x00" + struct.pack("<H", len(header)) + header


WRONG = {
    "pickled objects in a file": (npy(np.array([Payload()], object)), "holds Python objects"),
    "pickled objects in an archive": (archive(x__npy=npy(np.array([{}], object))), "x in .* Python objects"),
    "a pickle": (pickle.dumps(Payload()), r"no \.npz or \.npy file"),
    "text": (b"1,2,3", r"no \.npz or \.npy file"),
    "nothing": (b"", r"no \.npz or \.npy file"),
    "a broken archive": (archive(x__npy=npy([1.0]))[:-30], "damaged or was cut off"),
    "an archive of other things": (archive(x__txt=b"1"), "x.txt, which is no array"),
    "an empty archive": (archive(), "holds no arrays"),
    "words": (archive(x__npy=npy(["a", "b"])), "holds <U1"),
    "fields": (archive(x__npy=npy(np.zeros(2, [("a", "f4")]))), "holds "),
    "a cut array": (npy(np.zeros(9))[:-1], "damaged or was cut off"),
    "a cut header": (npy(np.zeros(9))[:20], "damaged or was cut off"),
    "an array that claims too much": (claiming(f"({1 << 40},)"), "damaged or was cut off"),
    "a negative size": (claiming("(-1, 4)"), "damaged or was cut off"),
    "a shape that is none": (claiming("('a',)"), "damaged or was cut off"),
    "a header that is no Python": (claiming("(1,"), "damaged or was cut off"),
    "an archive of an array that claims too much": (archive(x__npy=claiming("(9999, 9999)")), "damaged"),
}


@pytest.mark.parametrize("what", WRONG)
def test_other_files_are_refused_in_one_sentence(what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    content, said = WRONG[what]
    file = tmp_path / "inputs.npz"
    file.write_bytes(content)
    with pytest.raises(ProgramError, match=said) as error:
        samples_at(file)
    assert "\n" not in str(error.value) and not Path(PAYLOAD).exists()


def test_an_array_twice_is_refused(tmp_path: Path):
    file = tmp_path / "twice.npz"
    with zipfile.ZipFile(file, "w") as archive, pytest.warns(UserWarning, match="Duplicate name"):
        for _ in range(2):
            archive.writestr("x.npy", npy([1.0]))
    with pytest.raises(ProgramError, match="holds x twice"):
        samples_at(file)


def test_archives_that_expand_too_far_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("irgym.measure.samples.LARGEST", 30_000)
    np.savez_compressed(tmp_path / "a.npz", x=np.zeros(2_000), y=np.zeros(1_000))
    samples_at(tmp_path)
    np.savez_compressed(tmp_path / "b.npz", x=np.zeros(2_000))
    with pytest.raises(ProgramError, match="of samples: give fewer"):
        samples_at(tmp_path)
    with pytest.raises(ProgramError, match="of samples: give fewer"):
        np.savez_compressed(tmp_path / "a.npz", x=np.zeros(4_000))
        samples_at(tmp_path / "a.npz")


def test_folders_without_samples_and_with_too_many_are_refused(tmp_path: Path):
    with pytest.raises(ProgramError, match=r"has no \.npz or \.npy files"):
        samples_at(tmp_path)
    for place in range(MOST + 1):
        (tmp_path / f"{place}.npy").touch()
    with pytest.raises(ProgramError, match="at most 1,000 are read"):
        samples_at(tmp_path)
    with pytest.raises(ProgramError, match="cannot read"):
        samples_at(tmp_path / "none.npz")


def test_the_digest_follows_the_content(tmp_path: Path):
    for name, number in (("a.npz", 1.0), ("b.npz", 1.0), ("c.npz", 2.0)):
        (tmp_path / name).write_bytes(packed({"x": np.array(number)}))
    digests = [digest_at(tmp_path / f"{name}.npz") for name in "abc"]
    assert digests[0] == digests[1] != digests[2]
    Given(tmp_path / "a.npz", digests[0]).read()
    with pytest.raises(ProgramError, match="changed while it was read"):
        Given(tmp_path / "c.npz", digests[0]).read()


def test_arrays_are_stored_once_under_their_content(tmp_path: Path):
    first = stored([ARRAYS, {"x": np.zeros(1)}], tmp_path)
    assert first == stored([dict(reversed(ARRAYS.items())), {"x": np.zeros(1)}], tmp_path)
    assert first != stored([ARRAYS], tmp_path)
    assert [len(sample.arrays) for sample in samples_at(first)] == [4, 1]


@pytest.mark.parametrize("value", [None, "a", [[1], [1, 2]], {"a": 1}, object()])
def test_values_that_are_no_arrays_are_refused(value: object):
    with pytest.raises(ProgramError, match="x "):
        checked({"x": value}, "inputs")
    with pytest.raises(ProgramError, match="no name"):
        checked({1: np.zeros(1)}, "inputs")
