import json
import re
import subprocess
import sys

import llvm_modules
import numpy as np
import pytest
from llvm_modules import observed

from irgym.base.errors import ProgramError
from irgym.envs.llvm.observing.counts import OPERANDS, PREDICATES, TYPES
from irgym.envs.llvm.observing.ir2vec import ENTITIES, ENTITY_NAMES, Vocabulary, entity_counts
from irgym.envs.llvm.observing.opcodes import NEWER, NUMBERS

SECTIONS = {"Opcodes": (*NUMBERS, *NEWER), "Types": TYPES, "Arguments": (*OPERANDS, *PREDICATES)}


def whole(seed=0, size=5):
    draw = np.random.default_rng(seed)
    return {
        section: {name: draw.integers(-5, 6, size).astype(float).tolist() for name in names}
        for section, names in SECTIONS.items()
    }


def embedding(llvm, vocabulary, content, passes=""):
    seen = llvm.submit(observed, content, passes).result()["first"]
    return vocabulary.embedding(np.frombuffer(seen.counts, dtype=np.int32)), seen


@pytest.mark.parametrize(
    ("name", "passes"), [("small", ""), ("signals", "default<O3>"), ("sorting", "mem2reg")]
)
def test_embeddings_are_those_that_llvm_prints(llvm, sources, small, tmp_path, monkeypatch, name, passes):
    file = tmp_path / "vocabulary.json"
    file.write_text(json.dumps(whole()))
    found, seen = embedding(llvm, Vocabulary.read(file), small if name == "small" else sources[name], passes)
    (tmp_path / "module.bc").write_bytes(seen.bitcode)
    command = [sys.executable, llvm_modules.__file__, str(file), str(tmp_path / "module.bc")]
    printed = subprocess.run(command, capture_output=True, text=True, timeout=100, check=True)
    vectors = re.findall(r"Function vector:\s+\[([^]]*)\]", printed.stdout + printed.stderr)
    assert len(vectors) >= 3
    summed = np.sum([[float(number) for number in vector.split()] for vector in vectors], axis=0)
    np.testing.assert_allclose(found, summed, rtol=1e-5, atol=0.006 * len(vectors))
    assert np.abs(found).max() > 1


def test_a_vocabulary_is_read(tmp_path):
    file = tmp_path / "vocabulary.json"
    file.write_text(json.dumps(whole()))
    vocabulary = Vocabulary.read(file)
    assert vocabulary.size == 5 and vocabulary.missing == () and vocabulary.weighted.shape == (ENTITIES, 5)
    np.testing.assert_allclose(vocabulary.weighted[NUMBERS["Add"]], whole()["Opcodes"]["Add"])
    np.testing.assert_allclose(vocabulary.weighted[80], np.multiply(0.5, whole()["Types"]["FloatTy"]))
    np.testing.assert_allclose(
        vocabulary.weighted[-1], np.multiply(0.2, whole()["Arguments"]["ICMP_sle"]), rtol=1e-6
    )


def test_the_older_forms_are_read(tmp_path):
    """LLVM 21 has no sections; IR2Vec's package has lines and names in lower case."""
    vectors = {name: vector for section in whole().values() for name, vector in section.items()}
    flat, lines = tmp_path / "flat.json", tmp_path / "lines.txt"
    flat.write_text(json.dumps({name.lower(): vector for name, vector in vectors.items()}))
    lines.write_text(",\n".join(f"{name.lower()}:{vector}" for name, vector in vectors.items()))
    expected = Vocabulary.read(flat)
    assert expected.missing == ()
    np.testing.assert_array_equal(Vocabulary.read(lines).weighted, expected.weighted)


def test_a_newer_opcode_takes_an_older_ones_vector(tmp_path):
    file = tmp_path / "vocabulary.json"
    said = whole()
    for name in (*NEWER, "Freeze"):
        del said["Opcodes"][name]
    file.write_text(json.dumps(said))
    vocabulary = Vocabulary.read(file)
    assert vocabulary.missing == ("Freeze",)
    assert not vocabulary.weighted[NUMBERS["Freeze"]].any()
    for number, older in NEWER.values():
        np.testing.assert_array_equal(vocabulary.weighted[number], vocabulary.weighted[NUMBERS[older]])


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{}",
        "[]",
        "ret",
        "ret:[1.0]\nbr:[1.0, 2.0]",
        '{"Opcodes": {"Ret": [1.0], "Br": []}}',
        '{"Opcodes": {"Ret": []}}',
        '{"Opcodes": {"Ret": [NaN]}}',
        '{"Opcodes": {"Ret": ["a"]}}',
        '{"Opcodes": {"Ret": [[1.0]]}}',
        '{"Opcodes": {"Ret": [{}]}}',
        '{"Opcodes": {"Ret": [1' + "0" * 400 + "]}}",
        '{"Opcodes": {"Ret": 1.0}}',
        '{"Opcodes": 1}',
        '{"Opcodes": {"Nothing": [1.0]}}',
        "[" * 100_000,
        "{" + '"a":{' * 100_000,
        "\x00\ud800",
    ],
)
def test_what_is_no_vocabulary_is_refused(tmp_path, content):
    file = tmp_path / "file.json"
    file.write_text(content, errors="surrogatepass")
    with pytest.raises(ProgramError, match="is no vocabulary of IR2Vec"):
        Vocabulary.read(file)


def test_the_environment_names_a_vocabulary(tmp_path, monkeypatch):
    monkeypatch.delenv("IRGYM_IR2VEC", raising=False)
    assert Vocabulary.named() is None
    file = tmp_path / "vocabulary.json"
    monkeypatch.setenv("IRGYM_IR2VEC", str(file))
    with pytest.raises(ProgramError, match="No such file"):
        Vocabulary.named()
    file.write_text(json.dumps(whole()))
    vocabulary = Vocabulary.named()
    assert vocabulary is not None and vocabulary.size == 5


def test_an_embedding_is_a_product_of_entity_counts(llvm, small):
    vectors = {
        name.lower(): np.eye(1, len(ENTITY_NAMES), place, np.float32)[0]
        for place, name in enumerate(ENTITY_NAMES)
    }
    found, seen = embedding(llvm, Vocabulary.of(vectors), small)
    counts = entity_counts(np.frombuffer(seen.counts, dtype=np.int32))
    weights = [1.0 if name in (*NUMBERS, *NEWER) else 0.5 if name in TYPES else 0.2 for name in ENTITY_NAMES]
    np.testing.assert_allclose(found, counts * np.array(weights), rtol=1e-6)
    assert dict(zip(ENTITY_NAMES, counts.tolist(), strict=True))["CondBr"] == 1 and counts.sum() > 30


def test_files_that_cannot_be_read_are_refused(tmp_path):
    with pytest.raises(ProgramError, match="No such file"):
        Vocabulary.read(tmp_path / "none")
    with pytest.raises(ProgramError, match="cannot be read"):
        Vocabulary.read(tmp_path)
    large = tmp_path / "large"
    with large.open("wb") as file:
        file.truncate((16 << 20) + 1)
    with pytest.raises(ProgramError, match="more than 16 MiB"):
        Vocabulary.read(large)
