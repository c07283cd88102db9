"""Files of Stable-Baselines3: its zip archives, and irgym's own policy files of its models.

Only tensors and JSON are read. The pickled objects that an archive holds are never opened.
"""

import io
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast
from urllib.parse import parse_qs

import numpy as np

from irgym.base.errors import IrgymError, StorageError, UnsuitedPolicyError
from irgym.base.reading import is_regular
from irgym.core.task import Task
from irgym.policies.files import read_arrays_from
from irgym.policies.sb3 import Sb3Network, Sb3Policy, flat

PREFIX = "sb3:"
"""Begins the names of models."""

LARGEST = 1 << 30
"""Most bytes of an archive's weights or JSON."""


def split_name(name: str) -> tuple[str, str]:
    """Return the file and the observation of `sb3:FILE?observation=NAME`; the observation may be empty.

    Raises:
        IrgymError: It has another option.
    """
    file, _, query = name.removeprefix(PREFIX).partition("?")
    options = parse_qs(query, keep_blank_values=True)
    if set(options) - {"observation"}:
        raise IrgymError(f"{name!r} has an unknown option: write sb3:FILE?observation=NAME")
    return file, options.get("observation", [""])[0]


def is_archive(path: Path) -> bool:
    """Say whether a file is an archive of Stable-Baselines3."""
    if not is_regular(path) or not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as archive:
        return {"data", "policy.pth"} <= set(archive.namelist())


def load_archive(path: Path, task: Task[Any], observation: str = "") -> Sb3Policy:
    """Return the policy of an archive, for a task.

    Args:
        path: The file that a model's `save` wrote.
        task: What it is to act on.
        observation: Name of the observation; empty for the only one that has the model's size.

    Raises:
        StorageError: The file is missing, damaged or of another kind.
        UnsuitedPolicyError: It suits the task by no observation, or by several.
        IrgymError: It has layers that only the model's code can run.
    """
    network = read_network(path)
    return suited(network, task, observation)


def suited(network: Sb3Network, task: Task[Any], observation: str = "") -> Sb3Policy:
    """Return the policy of a network for a task; see `load_archive`."""
    state = task.initial()
    if not observation:
        names = [name for name, view in task.views.items() if view.value is not None]
        sizes = {name: _size(task, state, name) for name in names}
        found = [name for name in names if sizes[name] == network.inputs]
        if not found:
            raise UnsuitedPolicyError(
                f"the model reads {network.inputs} numbers, and no observation of {task.uri} has so many: "
                "choose a model that was trained on this environment"
            )
        if len(found) > 1:
            raise UnsuitedPolicyError(
                f"the model may read {' or '.join(found)}: name one, as in sb3:FILE?observation={found[0]}"
            )
        [observation] = found
    policy = Sb3Policy(network, task.space, observation)
    try:
        policy.check(task.space, task.observe(state, observation))
    except IrgymError as error:
        raise UnsuitedPolicyError(str(error)) from error
    return policy


def _size(task: Task[Any], state: Any, name: str) -> int | None:
    """Return how many numbers an observation has; None where it is no array."""
    try:
        return flat(task.observe(state, name), task.space).size
    except IrgymError:
        return None


def read_network(path: Path) -> Sb3Network:
    """Return the network of an archive.

    Raises:
        StorageError: The file is missing, damaged or of another kind.
        IrgymError: It has layers that only the model's code can run.
    """
    if not path.exists():
        raise StorageError(f"there is no model at {path}: check the path")
    if not is_archive(path):
        raise StorageError(f"{path} is no model of Stable-Baselines3: name a file that a model's save wrote")
    try:
        with zipfile.ZipFile(path) as archive:
            for entry in ("data", "policy.pth"):
                if archive.getinfo(entry).file_size > LARGEST:
                    raise ValueError(f"{entry} is too large")
            data: Any = json.loads(archive.read("data"))
            weights = read_arrays_from(
                io.BytesIO(archive.read("policy.pth")), archive.getinfo("policy.pth").file_size
            )
        arrays = {name: np.asarray(value, np.float32) for name, value in weights.items()}
        activation = _activation(data)
    except (zipfile.BadZipFile, ValueError, KeyError, TypeError, AttributeError, EOFError, OSError) as error:
        raise StorageError(f"{path} is damaged: restore it from a copy or save the model again") from error
    network = Sb3Network(arrays, activation)
    if not network.finite:
        raise StorageError(f"{path} holds weights that are not finite: train with a lower learning rate")
    return network


def _activation(data: Mapping[str, Any]) -> str:
    """Return the activation of a model: the one that was asked for, or the default of its kind of policy.

    Raises:
        IrgymError: It is none that is known here.
    """
    asked = str(cast(Mapping[str, Any], data.get("policy_kwargs") or {}).get("activation_fn", ""))
    return activation_named(asked, str(data["policy_class"]["__module__"]))


def activation_named(asked: str, module: str) -> str:
    """Return the name of an activation.

    Args:
        asked: Text of its class, such as `<class 'torch.nn.modules.activation.ReLU'>`; empty for the default.
        module: Module of the policy's class, which the default depends on.

    Raises:
        IrgymError: It is none that is known here.
    """
    if not asked:
        return "relu" if any(part in module for part in (".dqn.", ".qrdqn.", ".ars.")) else "tanh"
    for name in ("Tanh", "ReLU"):
        if asked.rstrip("'>").endswith(f".{name}"):
            return name.lower()
    raise IrgymError(f"the model has the activation {asked}: train one with Tanh or ReLU")
