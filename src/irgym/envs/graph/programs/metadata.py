"""What irgym reads in a model's metadata and writes there.

`irgym.range.INPUT` is `LOW,HIGH`: the whole numbers that an input may hold.
"""

from collections.abc import Mapping, Sequence

import onnx

from irgym.base.errors import ProgramError

NOTE = "irgym."
"""What the keys begin with."""

SESSION = f"{NOTE}session"
"""The options of the session that an exported model is to be run in."""

BLOCK = f"{NOTE}block"
"""The channels of a block in the layout of blocked operators, where an exported model has some."""

ORT_CONFIG = "ort_config"
"""Where ONNX Runtime looks for a model's session options, if it is told to."""

FIXED = f"{NOTE}fixed"
"""The initializers that callers of the original may override, and that are constants of an exported model."""

OVERRIDING = 4
"""The version of the format from which on initializers that are listed as inputs may be overridden."""

PREFIX = f"{NOTE}range."
"""What the keys of ranges begin with; the name of the input follows."""


def write_ranges(model: onnx.ModelProto, ranges: Mapping[str, tuple[int, int]]) -> None:
    """Write the ranges of inputs into a model; each is the least value and the one after the greatest."""
    for name, (low, high) in ranges.items():
        entry = model.metadata_props.add()
        entry.key, entry.value = PREFIX + name, f"{low},{high}"


def read_ranges(model: onnx.ModelProto) -> dict[str, tuple[int, int]]:
    """Return the ranges that a model has in its metadata.

    Raises:
        ProgramError: One of them is malformed or empty.
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
    """Note in a model which of its initializers callers may override, and list these as inputs no more.

    What an exported model notes of its original is dropped: in that model they are constants.
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
    """Return what `note_fixed` noted."""
    noted = next((entry.value for entry in model.metadata_props if entry.key == FIXED), "")
    return noted.split(",") if noted else ()
