"""Tables of weights and constants, with the archive's entry and the sizes of each."""

import re
from collections.abc import Mapping
from typing import Any, cast

from irgym.measure.pt2.refusal import Refused
from irgym.measure.pt2.text import checked_text

PAYLOAD = re.compile(r"(?:weight|tensor)_\d+")
"""Entries that tables may name; torch unpickles others, such as `opaque_obj_0`, in full."""


def checked_table(table: Any, held: Mapping[str, int]) -> Any:
    """Return a table after checking that all of its tensors are data in the archive.

    Args:
        table: Content of `model_weights_config.json` or `model_constants_config.json`.
        held: Sizes in bytes of the entries in the same folder, by name.

    Raises:
        Refused: The table names something else, or a tensor is larger than its entry.
    """
    entries = _fields(_fields(table).get("config"))
    for name, entry in entries.items():
        checked_text(name)
        _check_entry(name, entry, held)
    return {"config": dict(entries)}


def _fields(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise Refused("has a table of weights that torch.export does not write")
    return cast(Mapping[str, Any], value)


def _check_entry(name: str, entry: Any, held: Mapping[str, int]) -> None:
    payload = _fields(entry).get("path_name")
    if not isinstance(payload, str) or not PAYLOAD.fullmatch(payload) or payload not in held:
        raise Refused(f"keeps {name} as an object of Python ({payload}), and only tensors are loaded")
    meta = _fields(entry).get("tensor_meta")
    if meta is None:
        return  # torch's weights-only reader finds the sizes
    elements = 1
    for size in _fields(meta).get("sizes", ()):
        number = _fields(size).get("as_int")
        if not isinstance(number, int) or number < 0:
            raise Refused(f"has a weight {name} without fixed sizes")
        elements *= number
    if elements > held[payload]:
        raise Refused(f"has a weight {name} of {elements} elements in an entry of {held[payload]} bytes")
