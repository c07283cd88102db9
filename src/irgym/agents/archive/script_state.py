"""Tensors for a checkpoint of scripts with a program and a value each."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray


def scripts_state(
    programs: Sequence[int], scripts: Sequence[NDArray[Any]], values: Sequence[float], segments: int
) -> dict[str, Any]:
    """Return scripts of shape [steps, segments], the program of each, and its value, as tensors."""
    rows = list(scripts) or [np.zeros((0, segments), np.int16)]
    return {
        "programs": torch.tensor(programs, dtype=torch.int64),
        "values": torch.tensor(values, dtype=torch.float64),
        "lengths": torch.tensor([len(script) for script in scripts], dtype=torch.int64),
        "choices": torch.as_tensor(np.concatenate(rows).astype(np.int16)),
    }


def scripts_from_state(state: Mapping[str, Any]) -> Iterator[tuple[int, NDArray[np.int16], float]]:
    """Yield program, script and value of each, in the order given to `scripts_state`."""
    ends = np.cumsum(state["lengths"].numpy())
    scripts = np.split(state["choices"].numpy(), ends[:-1]) if len(ends) else []
    return zip(state["programs"].tolist(), scripts, state["values"].tolist(), strict=True)
