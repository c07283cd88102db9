"""Small random programs of the kinds that `loops` takes besides products of float32 matrices."""

import random
from collections.abc import Collection

from irgym.base.errors import ProgramError
from irgym.envs.loops.programs.contraction import Contraction, parse_uri
from irgym.envs.loops.programs.elements import ELEMENTS

EINSUMS = (
    "i,i->",
    "ij->ji",
    "ii->i",
    "ii",
    "ij->",
    "ij->j",
    "i,ij->j",
    ",ij->ij",
    "ij,->ji",
    "Ab,bC->AC",
    "[h-r+3],r->h",
    "n[h-r+1:9],r->nh",
    "n[-h+30:31],n->hn",
    "[h+r-1:5]n,[2*r-1:4]n->hn",
    "i[3],ij->ij",
    "[i+2:40]j,j->i",
    "[-i+50]j,j->i",
    "[i-1:40]j->ij",
    "i[i+j]->ij",
    "n[-m+40]k,kn->mn",
)


def _convolution(rng: random.Random) -> str:
    rank = rng.choice((1, 2, 2, 3))
    name = ("conv1d", "conv", "conv3d")[rank - 1]
    groups = rng.choice((1, 1, 2))
    outputs = [rng.randint(1, (16, 6, 3)[rank - 1]) for _ in range(rank)]
    taps = [rng.randint(1, 3) for _ in range(rank)]
    sizes = (rng.randint(1, 2), *outputs, groups * rng.randint(1, 5), groups * rng.randint(1, 20), *taps)
    options = {
        "stride": rng.randint(1, 2),
        "dilation": rng.randint(1, 2),
        "groups": groups,
        "padding": rng.randint(0, 2),
        "flip": rng.choice(("true", "false")),
    }
    query = "&".join(f"{name}={value}" for name, value in options.items())
    return f"loops://{name}/{'x'.join(map(str, sizes))}?{query}"


def _einsum(rng: random.Random) -> str:
    spec = rng.choice(EINSUMS)
    letters = sorted({letter for letter in spec if letter.isalpha()})
    sizes = {letter: rng.choice((1, 2, rng.randint(1, 23), 23)) for letter in letters}
    sizes |= {"r": rng.randint(2, 3)} if "r" in sizes else {}
    return f"loops://einsum/{spec}?" + "&".join(f"{letter}={size}" for letter, size in sizes.items())


def any_program(rng: random.Random, types: Collection[str] = tuple(ELEMENTS)) -> Contraction:
    """Return a convolution or an einsum with affine axes, of one of some types of elements."""
    while True:
        uri = rng.choice((_convolution, _einsum))(rng)
        dtype = rng.choice([name for name in ("f32", "f64", "f64", "bf16", "i8") if name in types])
        try:
            return parse_uri(f"{uri}&dtype={dtype}")
        except ProgramError as error:
            if "zeros along" not in str(error) and "no input left" not in str(error):
                raise
