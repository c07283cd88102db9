"""Random legal nests, shared by the tests of lowering and of the code generators."""

import ctypes
import mmap
import random
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest

from irgym.envs.loops.compiling import lower, packing, streaming
from irgym.envs.loops.compiling.plan import vectorisable
from irgym.envs.loops.nest import Loop, Mark, Nest
from irgym.envs.loops.programs.contraction import Contraction, Tensor, parse_uri

MAX_LOOPS = 10


def _steps(rng: random.Random, size: int, most: int) -> list[int]:
    """Return steps of the loops over one dimension, outermost first."""
    steps = [1]
    while len(steps) < most and rng.random() < 0.6:
        step = steps[0] * rng.choice((2, 3, 4, 5, 8, 16, 32, 1024))
        if step >= size:
            break
        steps.insert(0, step)
    return steps


def _random_nest(contraction: Contraction, seed: int) -> Nest:
    rng = random.Random(seed)
    spare = MAX_LOOPS - len(contraction.sizes)
    steps: dict[str, list[int]] = {}
    for dim, size in rng.sample(list(contraction.sizes.items()), len(contraction.sizes)):
        steps[dim] = _steps(rng, size, spare + 1)
        spare -= len(steps[dim]) - 1
    places = [dim for dim, chain in steps.items() for _ in chain]
    rng.shuffle(places)
    loops = [
        Loop(dim, steps[dim].pop(0), Mark.UNROLL if rng.random() < 0.2 else Mark.PLAIN) for dim in places
    ]
    candidates = [
        place for place, loop in enumerate(loops) if loop.step == 1 and vectorisable(contraction, loop.dim)
    ]
    if candidates and rng.random() < 0.5:
        place = rng.choice(candidates)
        loops[place] = Loop(loops[place].dim, 1, Mark.VECTORISE)
    for name in "ab":
        if rng.random() < 0.4:
            place = rng.randrange(len(loops))
            loops[place] = replace(loops[place], packs=loops[place].packs + name)
    return Nest(tuple(loops))


def _random_contraction(seed: int) -> Contraction:
    rng = random.Random(seed)

    def size(most: int) -> int:
        return rng.choice((1, 2, rng.randint(1, most), rng.randint(1, most), most))

    m, n, k = size(40), size(70), size(40)
    family = rng.randrange(6)
    if family == 0:
        return parse_uri(f"loops://mm/{m}x{n}x{k}")
    if family == 1:
        return parse_uri(f"loops://bmm/{size(5)}x{size(20)}x{n}x{size(20)}")
    if family == 2:
        shape = (size(2), size(6), size(6), size(9), size(40), rng.randint(1, 3), rng.randint(1, 3))
        return parse_uri(f"loops://conv/{'x'.join(map(str, shape))}?stride={rng.randint(1, 2)}")
    spec = rng.choice(
        (
            "mk,nk->mn",
            "km,kn->mn",
            "km,nk->nm",
            "m,n->mn",
            "mk,k->m",
            "k,kn->n",
            "mn,mn->mn",
            "mk,mk->m",
            "k,k->k",
            "nm,m->mn",
            "[m+k],k->m",
            "[3*m+k],kn->mn",
            "[2*m+k]n,k->nm",
            "[m+n],k->mnk",
            "mk,n->mn",
        )
    )
    sizes = {"m": m, "n": n, "k": k}
    options = "&".join(f"{dim}={sizes[dim]}" for dim in sizes if dim in spec)
    return parse_uri(f"loops://einsum/{spec}?{options}")


@pytest.fixture(scope="session")
def random_nest() -> Callable[[Contraction, int], Nest]:
    """Return a function that makes a legal nest of a contraction from a seed."""
    return _random_nest


@pytest.fixture(scope="session")
def random_contraction() -> Callable[[int], Contraction]:
    """Return a function that makes a small contraction of any kind from a seed."""
    return _random_contraction


@contextmanager
def _prefetching(everything: bool) -> Iterator[None]:
    with (
        patch.object(packing, "PREFETCHED", 0 if everything else packing.PREFETCHED),
        patch.object(lower, "LARGE_OUTPUT", 0 if everything else lower.LARGE_OUTPUT),
        patch.object(lower, "LONG", 0 if everything else lower.LONG),
        patch.object(streaming, "SHARE", 0 if everything else streaming.SHARE),
        patch.object(streaming, "NEAR_BYTES", 0 if everything else streaming.NEAR_BYTES),
    ):
        yield


@pytest.fixture(scope="session")
def prefetching() -> Callable[[bool], AbstractContextManager[object]]:
    """Return a context in which small inputs and outputs are prefetched too, on request."""
    return _prefetching


def _at_page_end(values: Tensor) -> Tensor:
    whole = -(-values.nbytes // mmap.PAGESIZE) * mmap.PAGESIZE
    memory = mmap.mmap(-1, whole + mmap.PAGESIZE)
    guard = ctypes.addressof(ctypes.c_char.from_buffer(memory)) + whole
    if ctypes.CDLL(None).mprotect(ctypes.c_void_p(guard), ctypes.c_size_t(mmap.PAGESIZE), 0):
        raise OSError("cannot protect a page")
    start = whole - values.nbytes
    array = np.frombuffer(memory, np.uint8, values.nbytes, start).view(values.dtype).reshape(values.shape)
    array[...] = values
    return array


@pytest.fixture(scope="session")
def at_page_end() -> Callable[[Tensor], Tensor]:
    """Return a function that copies an array so that touching memory past its end crashes."""
    return _at_page_end
