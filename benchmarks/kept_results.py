"""Results that benchmarks keep in files, so that one that was stopped goes on."""

import json
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from multiprocessing import get_context
from pathlib import Path
from typing import Any


def kept(file: Path, function: Callable[..., Any], *arguments: Any) -> dict[str, Any]:
    """Return the fields of a result in a file, or else of what a function returns in a new process.

    A process for each, so that trainings do not affect each other.

    Args:
        file: File of the result, written when the function has ended.
        function: Returns a dataclass.
        arguments: Its arguments.
    """
    if not file.exists():
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as alone:
            result = alone.submit(function, *arguments).result()
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(asdict(result)))
    return json.loads(file.read_text())
