"""Configuration files in JSON, TOML or YAML, by their suffix."""

import json
import tomllib
from pathlib import Path
from typing import Any, cast

from irgym.base.errors import BackendError, StorageError, explained

LARGEST = 1 << 24
"""Most bytes of a configuration file."""

FORMS = (".json", ".toml", ".yaml", ".yml")
"""Suffixes of configuration files."""


def read_configuration(path: Path) -> dict[str, Any]:
    """Return the values of a configuration file by their names.

    Raises:
        BackendError: The file is YAML, and PyYAML is not installed.
        StorageError: It has another suffix, cannot be read, is malformed, or holds no names with values.
    """
    if path.suffix.lower() not in FORMS:
        raise StorageError(f"{path} is no configuration file: name one that ends in {', '.join(FORMS)}")
    with explained(f"cannot read {path}", "check the path and its permissions"):
        if not path.is_file():
            raise StorageError(f"there is no file {path}: check the path")
        if path.stat().st_size > LARGEST:
            raise StorageError(f"{path} is too large for a configuration file: check the path")
        content = path.read_bytes()
    try:
        values = _parsed(content.decode(), path.suffix.lower())
    except ValueError as error:  # UnicodeDecodeError and the errors of json and tomllib among them
        reason = " ".join(str(error).split())
        raise StorageError(f"{path} is malformed ({reason}): correct it") from error
    named = isinstance(values, dict) and all(isinstance(name, str) for name in cast(dict[Any, Any], values))
    if not named:
        raise StorageError(f"{path} holds no names with values: write the names of options and their values")
    return cast(dict[str, Any], values)


def _parsed(text: str, suffix: str) -> Any:
    """Return what a text holds.

    Raises:
        BackendError: It is YAML, and PyYAML is not installed.
        ValueError: It is malformed.
    """
    if suffix == ".json":
        return json.loads(text)
    if suffix == ".toml":
        return tomllib.loads(text)
    try:
        import yaml
    except ImportError as error:
        remedy = "pip install 'irgym[yaml]', or write JSON or TOML"
        raise BackendError(f"PyYAML, which reads YAML, is not installed: {remedy}") from error
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error
