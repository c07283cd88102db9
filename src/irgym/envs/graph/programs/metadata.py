"""Which whole numbers a model's inputs may hold, in its metadata: `irgym.range.INPUT` is `LOW,HIGH`."""

from collections.abc import Mapping

import onnx

from irgym.core.errors import ProgramError

PREFIX = "irgym.range."
"""What the keys begin with; the name of the input follows."""


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
