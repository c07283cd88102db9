"""Entries that irgym reads and writes in a model's metadata.

`irgym.range.INPUT` is `LOW,HIGH`, the half-open range of an integer input.
"""

from collections.abc import Mapping, Sequence

import onnx

from irgym.base.errors import ProgramError
from irgym.core.profiles import Profile, profiles_of

NOTE = "irgym."
"""Prefix of the keys."""

SESSION = f"{NOTE}session"
"""Key of the session options for an exported model."""

BLOCK = f"{NOTE}block"
"""Key of the channels in a block, if an exported model has blocked operators."""

ORT_CONFIG = "ort_config"
"""Key under which ONNX Runtime can look for session options."""

FIXED = f"{NOTE}fixed"
"""Key of the initializers that callers of the original may override; exported models have them constant."""

OVERRIDING = 4
"""The IR version from which on callers may override initializers that are listed as inputs."""

PREFIX = f"{NOTE}range."
"""Prefix of the keys of ranges; the name of the input follows."""


INPUTS = f"{NOTE}inputs"
"""Key of the digest of the samples that a model is checked on; exported models do not have it."""

SIZE = f"{NOTE}size."
"""Prefix of the keys of the sizes at which open dimensions are measured; the dimension's name follows."""

PROFILES = f"{NOTE}profiles"
"""Key of all sizes at which a model is measured, with their weights, if there are several."""

JOINT = "&"
"""Separator of profiles; no name of a dimension contains it."""


def unnamed(value: str, axis: int) -> str:
    """Return the name that irgym gives to a dimension without one."""
    return f"{value}.{axis}"


def write_sizes(model: onnx.ModelProto, sizes: Mapping[str, int]) -> None:
    """Write the sizes at which a model is measured into it, replacing earlier ones."""
    kept = [entry for entry in model.metadata_props if not entry.key.startswith(SIZE)]
    del model.metadata_props[:]
    model.metadata_props.extend(kept)
    for name, size in sizes.items():
        model.metadata_props.add(key=SIZE + name, value=str(size))


def read_sizes(model: onnx.ModelProto) -> dict[str, int]:
    """Return the sizes at which a model is measured, by the names of its open dimensions."""
    return {
        entry.key.removeprefix(SIZE): int(entry.value)
        for entry in model.metadata_props
        if entry.key.startswith(SIZE)
    }


def write_profiles(model: onnx.ModelProto, profiles: Sequence[Profile]) -> None:
    """Write the profiles at which a model is measured into it, replacing earlier ones; none for a single one.

    The sizes of the first are written by `write_sizes`.
    """
    kept = [entry for entry in model.metadata_props if entry.key != PROFILES]
    del model.metadata_props[:]
    model.metadata_props.extend(kept)
    if profiles:
        model.metadata_props.add(key=PROFILES, value=JOINT.join(profile.text for profile in profiles))


def read_profiles(model: onnx.ModelProto) -> tuple[Profile, ...]:
    """Return the profiles at which a model is measured, if there are several; else nothing.

    Raises:
        ProgramError: The metadata are malformed.
    """
    text = next((entry.value for entry in model.metadata_props if entry.key == PROFILES), "")
    try:
        return profiles_of(text.split(JOINT), {}) if text else ()
    except ProgramError as error:
        raise ProgramError(f"the model's metadata {PROFILES} are malformed ({error}): name sizes") from error


def note_inputs(model: onnx.ModelProto, digest: str) -> None:
    """Record in a model the digest of samples of its inputs, replacing an earlier one; empty for none."""
    kept = [entry for entry in model.metadata_props if entry.key != INPUTS]
    del model.metadata_props[:]
    model.metadata_props.extend(kept)
    if digest:
        model.metadata_props.add(key=INPUTS, value=digest)


def read_inputs(model: onnx.ModelProto) -> str:
    """Return the digest of samples of a model's inputs; empty for none."""
    return next((entry.value for entry in model.metadata_props if entry.key == INPUTS), "")


def write_ranges(model: onnx.ModelProto, ranges: Mapping[str, tuple[int, int]]) -> None:
    """Write the half-open ranges of inputs into a model."""
    for name, (low, high) in ranges.items():
        entry = model.metadata_props.add()
        entry.key, entry.value = PREFIX + name, f"{low},{high}"


def read_ranges(model: onnx.ModelProto) -> dict[str, tuple[int, int]]:
    """Return the ranges that a model has in its metadata.

    Raises:
        ProgramError: A range is malformed or empty.
    """
    ranges: dict[str, tuple[int, int]] = {}
    for entry in model.metadata_props:
        if not entry.key.startswith(PREFIX):
            continue
        try:
            low, high = map(int, entry.value.split(","))
        except ValueError:
            low = high = 0
        if low >= high:
            raise ProgramError(
                f"the model's metadata {entry.key} is {entry.value!r}: write LOW,HIGH, as in 0,1000"
            )
        ranges[entry.key.removeprefix(PREFIX)] = (low, high)
    return ranges


def note_fixed(model: onnx.ModelProto) -> None:
    """Record in a model which of its initializers callers may override, and remove these from its inputs.

    A record from the original of an exported model is dropped, since those initializers are constant now.
    """
    graph = model.graph
    notes = [entry for entry in model.metadata_props if entry.key != FIXED]
    del model.metadata_props[:]
    model.metadata_props.extend(notes)
    given = {tensor.name for tensor in graph.initializer}
    names = [value.name for value in graph.input if value.name in given]
    kept = [value for value in graph.input if value.name not in given]
    del graph.input[:]
    graph.input.extend(kept)
    if names and model.ir_version >= OVERRIDING:
        model.metadata_props.add(key=FIXED, value=",".join(names))


def read_fixed(model: onnx.ModelProto) -> Sequence[str]:
    """Return the initializers that `note_fixed` recorded."""
    noted = next((entry.value for entry in model.metadata_props if entry.key == FIXED), "")
    return noted.split(",") if noted else ()
