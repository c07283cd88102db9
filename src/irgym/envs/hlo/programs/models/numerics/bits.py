"""Integer arithmetic: hashes, checksums, random bits, Bloom filters."""

# The type declarations of jax are incomplete.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportUnknownParameterType=false

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from irgym.envs.hlo.programs.models.model import Model, Options, Tree
from irgym.envs.hlo.programs.models.numerics.functions import program


def _rotated(x: jax.Array, by: int) -> jax.Array:
    return (x << by) | (x >> (32 - by))


def _finished(h: jax.Array) -> jax.Array:
    """Mix the bits of 32-bit words at the end of a hash (MurmurHash3)."""
    h = (h ^ (h >> 16)) * jnp.uint32(0x85EBCA6B)
    h = (h ^ (h >> 13)) * jnp.uint32(0xC2B2AE35)
    return h ^ (h >> 16)


def _murmur(words: jax.Array, rounds: int) -> jax.Array:
    """Hash rows of 32-bit words."""
    h = jnp.full(words.shape[0], 7, jnp.uint32)
    for _ in range(rounds):
        for column in range(words.shape[1]):
            k = _rotated(words[:, column] * jnp.uint32(0xCC9E2D51), 15) * jnp.uint32(0x1B873593)
            h = _rotated(h ^ k, 13) * jnp.uint32(5) + jnp.uint32(0xE6546B64)
    return _finished(h ^ jnp.uint32(4 * words.shape[1]))


def _checksum(words: jax.Array, rounds: int) -> jax.Array:
    """The cyclic redundancy check of rows of words, bit by bit."""

    def bit(crc: jax.Array, _: None) -> tuple[jax.Array, None]:
        return jnp.where(crc & 1 == 1, (crc >> 1) ^ jnp.uint32(0xEDB88320), crc >> 1), None

    crc = jnp.full(words.shape[0], 0xFFFFFFFF, jnp.uint32)
    for column in range(words.shape[1]):
        crc, _ = jax.lax.scan(bit, crc ^ words[:, column], None, length=32, unroll=rounds)
    return ~crc


def _quarters(words: jax.Array, rounds: int) -> jax.Array:
    """Quarter rounds of additions, exclusive ors and rotations, as in ChaCha."""
    a, b, c, d = words.T

    def step(_: int, state: Any) -> Any:
        a, b, c, d = state
        a, d = a + b, _rotated(d ^ (a + b), 16)
        c, b = c + d, _rotated(b ^ (c + d), 12)
        a, d = a + b, _rotated(d ^ (a + b), 8)
        c, b = c + d, _rotated(b ^ (c + d), 7)
        return a, b, c, d

    for _ in range(rounds):
        a, b, c, d = jax.lax.fori_loop(0, 4, step, (a, b, c, d))
    return jnp.stack([a, b, c, d], 1) + words


def _shifted(words: jax.Array, rounds: int) -> jax.Array:
    """Numbers from xorshift generators, as floats in 0 to 1."""

    def step(x: jax.Array, none: None) -> tuple[jax.Array, jax.Array]:
        for _ in range(rounds):
            x = x ^ (x << 13)
            x = x ^ (x >> 17)
            x = x ^ (x << 5)
        return x, (x >> 8).astype(jnp.float32) * jnp.float32(2.0**-24)

    return jax.lax.scan(step, words | 1, None, length=8)[1]


def _interleaved(words: jax.Array, rounds: int) -> Tree:
    """Morton codes of pairs of numbers, their set bits and leading zeros, and their order."""

    def apart(x: jax.Array) -> jax.Array:
        x = x & 0xFFFF
        for shift, mask in ((8, 0x00FF00FF), (4, 0x0F0F0F0F), (2, 0x33333333), (1, 0x55555555)):
            x = (x | (x << shift)) & jnp.uint32(mask)
        return x

    code = words[:, 0]
    for place in range(rounds):
        code = apart(words[:, place % 4] ^ code) | (apart(words[:, (place + 1) % 4]) << 1)
    return code, jax.lax.population_count(code), jax.lax.clz(code), jnp.argsort(code)


def _filtered(words: jax.Array, rounds: int) -> Tree:
    """A Bloom filter of half the rows, queried for all rows."""
    room = 256
    half = words.shape[0] // 2
    bits = jnp.zeros(room, bool)
    places = [
        (_finished(words[:, 0] + jnp.uint32(k) * words[:, 1]) % room).astype(jnp.int32) for k in range(rounds)
    ]
    for place in places:
        bits = bits.at[place[:half]].set(True)
    found = jnp.ones(words.shape[0], bool)
    for place in places:
        found = found & bits[place]
    return found, bits.sum(), bits


_HASHES: dict[str, Callable[[jax.Array, int], Tree]] = {
    "murmur": _murmur,
    "checksum": _checksum,
    "quarters": _quarters,
    "xorshift": _shifted,
    "morton": _interleaved,
    "bloom": _filtered,
}


def hashing(options: Options) -> Model:
    """Integer arithmetic on rows of four 32-bit words."""

    def run(words: jax.Array) -> Tree:
        return _HASHES[options["method"]](words, options["rounds"])

    return program(run, words=jax.ShapeDtypeStruct((options["rows"], 4), jnp.uint32))
