"""The smallest useful URI of each family."""

from importlib.util import find_spec

import pytest

from irgym.envs.graph.programs.families import FAMILIES, PACKAGES

SMALL = {
    "layers": 1,
    "hidden": 32,
    "heads": 2,
    "sequence": 6,
    "vocabulary": 48,
    "grid": 2,
    "segments": 3,
    "segment": 4,
    "left": 4,
    "right": 1,
    "cells": 2,
    "levels": 1,
    "width": 4,
    "blocks": 1,
}


def small(name: str) -> str:
    """Return the URI; skip the test where the package that has the models is missing."""
    package = PACKAGES.get(name)
    if package and find_spec(package) is None:
        pytest.skip(f"needs {package}: pip install 'irgym[graph-models]'")
    least = {option.name: SMALL.get(option.name, option.low) for option in FAMILIES[name].options}
    return f"graph://{name}?{'&'.join(f'{option}={value}' for option, value in least.items())}"
