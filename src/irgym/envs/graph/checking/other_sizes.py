"""Other sizes of open dimensions than those that a model is measured at."""

from collections.abc import Iterator, Mapping, Sequence

WANTED = 3
"""Number of other sizes on which a result is checked."""


def other_sizes(
    profile: Mapping[str, int], least: Mapping[str, int], profiles: Sequence[Mapping[str, int]] = ()
) -> Iterator[dict[str, int]]:
    """Yield sizes to try, of which a model may accept some only: 1, odd, larger, each dimension by itself.

    Args:
        profile: The sizes that the model is measured at, by the names of its open dimensions.
        least: The least sizes of the dimensions.
        profiles: Further sizes that it is measured at.
    """
    seen = [dict(profile), *map(dict, profiles)]
    together = (
        dict.fromkeys(profile, 1),
        {name: size + 1 for name, size in profile.items()},
        {name: 2 * size for name, size in profile.items()},
        {name: max(size // 2, 1) for name, size in profile.items()},
    )
    alone = (
        {**profile, name: changed}
        for name, size in profile.items()
        for changed in (2 * size, size + 1, max(size // 2, 1), 1, 3, size + 32)
    )
    for sizes in (*together, *alone):
        larger = {name: max(size, least[name]) for name, size in sizes.items()}
        if larger not in seen:
            seen.append(larger)
            yield larger


def text_of(sizes: Mapping[str, int]) -> str:
    """Return sizes as users write them."""
    return ", ".join(f"{name}={size}" for name, size in sizes.items())
