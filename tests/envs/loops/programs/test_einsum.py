"""Programs in numpy's notation, with numpy's einsum as the oracle."""

import random
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from irgym.base.errors import ProgramError
from irgym.envs.loops.programs.contraction import parse_uri
from irgym.programs import from_einsum

SEEDS = st.integers(0, 2**32 - 1)


def drawn(seed: int) -> tuple[str, list[np.ndarray]]:
    """Return random subscripts and arrays: repeated letters, dots, sizes of 1, with or without `->`."""
    rng = random.Random(seed)
    letters = "".join(rng.sample("iIjJkz", 4))
    sizes = {letter: rng.randint(1, 4) for letter in letters}
    batch = [rng.randint(1, 3) for _ in range(rng.randint(0, 2))]
    words, arrays = [], []
    for _ in range(rng.randint(1, 2)):
        word = [rng.choice(letters) for _ in range(rng.randint(0, 3))]
        shape = [1 if rng.random() < 0.1 and word.count(dim) == 1 else sizes[dim] for dim in word]
        if rng.random() < 0.3:
            place, kept = rng.randint(0, len(word)), rng.randint(0, len(batch))
            word.insert(place, "...")
            shape[place:place] = [rng.choice((1, size)) for size in batch[len(batch) - kept :]]
        words.append("".join(word))
        arrays.append(np.random.default_rng(seed).integers(-9, 9, shape).astype(rng.choice((np.float32,))))
    text = ",".join(words)
    if rng.random() < 0.6:
        used = sorted({letter for letter in text if letter.isalpha()})
        chosen = rng.sample(used, rng.randint(0, len(used)))
        text += " -> " + ("..." if "..." in text else "") + "".join(chosen)
    return text.replace(",", " , "), arrays


@settings(deadline=None, max_examples=200)
@given(seed=SEEDS)
def test_every_einsum_of_one_or_two_arrays_is_numpys(seed: int):
    text, arrays = drawn(seed)
    try:
        expected = np.einsum(text, *arrays)
    except ValueError:
        with pytest.raises(ProgramError):
            from_einsum(text, *arrays)
        return
    if not any(array.ndim for array in arrays):
        with pytest.raises(ProgramError, match="has no loop"):
            from_einsum(text, *arrays)
        return
    contraction = parse_uri(from_einsum(text, *arrays))
    assert parse_uri(contraction.uri) == contraction
    assert contraction.shapes[: len(arrays)] == tuple(array.shape for array in arrays)
    found = contraction.reference(*arrays, *[contraction.unit] * (2 - len(arrays)))
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("uri", "same"),
    [
        ("loops://einsum/ij,jk?i=2&j=3&k=4", "loops://einsum/ij,jk->ik?i=2&j=3&k=4"),
        ("loops://einsum/ba?a=2&b=3", "loops://einsum/ba->ab?a=2&b=3"),
        ("loops://einsum/m k , k n -> m n?m=2&n=3&k=4", "loops://einsum/mk,kn->mn?k=4&m=2&n=3"),
        ("loops://einsum/...i,ij?...=2x3&i=4&j=5", "loops://einsum/abi,ij->abj?a=2&b=3&i=4&j=5"),
        ("loops://einsum/...i->i...?...=2&i=4", "loops://einsum/ai->ia?a=2&i=4"),
        ("loops://einsum/[1*h+r+0],r->h?h=4&r=2", "loops://einsum/[h+r],r->h?h=4&r=2"),
        ("loops://einsum/mk,kn->mn?m=2&n=3&k=4&dtype=f32", "loops://einsum/mk,kn->mn?k=4&m=2&n=3"),
    ],
)
def test_a_program_has_one_text(uri: str, same: str):
    assert parse_uri(uri).uri == same


@pytest.mark.parametrize(
    ("uri", "said"),
    [
        ("loops://einsum/ij,jk,kl->il?i=2&j=2&k=2&l=2", "contract two of them at a time"),
        ("loops://einsum/ij->i,j?i=2&j=2", "write a program for each"),
        ("loops://einsum/ij,jk->i[j+k]?i=2&j=2&k=2", "each axis of the output is one letter"),
        ("loops://einsum/ij->ii?i=2&j=2", "each axis of the output is one letter"),
        ("loops://einsum/...i->...?i=2", "add ...=8"),
        ("loops://einsum/i->i?i=2&...=3", "no input has"),
        ("loops://einsum/......i->i?i=2&...=3", "at most once"),
        ("loops://einsum/...i->i?i=2&...=3xx", "sizes of the dots"),
        ("loops://einsum/,->?i=2", "remove i"),
        ("loops://einsum/[h-r],r->h?h=4&r=2", r"give the axis a size, as in \[h-r:4\]"),
        ("loops://einsum/[h-9:4],h->h?h=4", "nothing but zeros"),
        ("loops://einsum/[2h],h->h?h=4", "an axis is a letter"),
        ("loops://einsum/[h*2],h->h?h=4", "an axis is a letter"),
        ("loops://einsum/[h+],h->h?h=4", "an axis is a letter"),
        ("loops://einsum/[],h->h?h=4", "an axis is a letter"),
        ("loops://einsum/[h,h->h?h=4", "an axis is a letter"),
        ("loops://einsum/ij,jk->>ik?i=2&j=2&k=2", "an axis is a letter"),
        ("loops://mm/2x2x2?dtype=f16", "dtype must be f32 or f64 or bf16 or i8"),
        ("loops://mm/2x2x200000?dtype=i8", "shorten them"),
        ("loops://conv/1x3x3x3x4x3x3?groups=2", "must divide the channels"),
        ("loops://conv1d/1x1x3x4x3?padding=2", "lower it to 1"),
        ("loops://conv/1x4000x4200x1x1x3x3?padding=1", "pad it yourself"),
    ],
)
def test_other_programs_are_refused_with_what_would_do(uri: str, said: str):
    with pytest.raises(ProgramError, match=said) as caught:
        parse_uri(uri)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("subscripts", "operands", "said"),
    [
        ("ij,jk", [(2, 3), (4, 5)], "j has the sizes 3 and 4"),
        ("ij,jk", [(2, 3)], "has 2 inputs"),
        ("ij,jk", [(2, 3), (3,)], "cannot have 1 axes"),
        ("i...j", [(2,)], "cannot have 1 axes"),
        ("ij", [(2, 0)], "has no elements"),
        ("ij", ["ab"], "not 'ab'"),
        ("i,i", [np.ones(3), np.ones(3, np.float32)], "convert them to one type"),
        ("i,i", [np.ones(3, np.int64)] * 2, "loops has no programs of int64"),
        ("[h+r],r->h", [(5,), (2,)], "add h"),
        ("[h+r:4],r->h", [(5,), (2,)], "leave out one"),
    ],
)
def test_operands_that_do_not_fit_are_refused(subscripts: str, operands: list[object], said: str):
    with pytest.raises(ProgramError, match=re.escape(said)):
        from_einsum(subscripts, *operands)


def test_sizes_and_types_come_from_arrays():
    torch = pytest.importorskip("torch")
    assert from_einsum("ij,jk", np.ones((2, 3)), np.ones((3, 4))).endswith("?dtype=f64&i=2&j=3&k=4")
    assert from_einsum("i->", torch.ones(3, dtype=torch.bfloat16)) == "loops://einsum/i->?dtype=bf16&i=3"
    assert from_einsum("[h+r],r->h", (5,), (2,), h=4) == "loops://einsum/[h+r],r->h?h=4&r=2"
    assert from_einsum("[h+r-1],r->h", (4,), (3,), h=4) == "loops://einsum/[h+r-1:4],r->h?h=4&r=3"
    assert from_einsum("ij,ij->ij", (1, 3), (2, 3)) == "loops://einsum/[0]j,ij->ij?i=2&j=3"
