"""Options of ONNX Runtime's sessions, in the forms that people, models and ONNX Runtime read."""

import json
import re

LEVELS = {
    "off": "ORT_DISABLE_ALL",
    "basic": "ORT_ENABLE_BASIC",
    "extended": "ORT_ENABLE_EXTENDED",
    "all": "ORT_ENABLE_ALL",
}
"""Levels of ONNX Runtime's optimiser: irgym's names, and those of ONNX Runtime."""

OFF = "off"
"""The level at which the optimiser does nothing."""

ALL = "all"
"""The level at which it does all that it can."""

NUMBERS = {"off": 0, "basic": 1, "extended": 2, "all": 99}
"""ONNX Runtime's numbers of the levels."""

CONFIG_VARIABLE = "ORT_LOAD_CONFIG_FROM_MODEL"
"""Environment variable; if 1, ONNX Runtime reads session options from models."""


def options_text(level: str, threads: int) -> str:
    """Return the options as text.

    Args:
        level: Level of ONNX Runtime's optimiser, a key of `LEVELS`.
        threads: Threads of an operator.
    """
    return f"graph_optimization_level={LEVELS[level]} intra_op_num_threads={threads}"


def read_options(text: str) -> tuple[str, int] | None:
    """Return the level and the threads in a text that `options_text` wrote; None for other texts."""
    found = re.fullmatch(r"graph_optimization_level=(\w+) intra_op_num_threads=([1-9]\d*)", text)
    level = next((level for level, name in LEVELS.items() if found and name == found[1]), None)
    return None if found is None or level is None else (level, int(found[2]))


def options_json(level: str, threads: int) -> str:
    """Return the options as ONNX Runtime reads them from a model's metadata `ort_config`.

    It does so only if the environment variable `CONFIG_VARIABLE` is 1.
    """
    options = {
        "graph_optimization_level": NUMBERS[level],
        "intra_op_num_threads": threads,
        "inter_op_num_threads": 1,
    }
    return json.dumps({"session_options": options})
