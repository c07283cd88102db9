"""Evaluation of models on the JIT CSE gymnasium's environment, beside the compiler's own heuristic."""

from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

from irgym.api.requests import Evaluating, checked
from irgym.base.errors import IrgymError
from irgym.core.catalogue import ENVIRONMENTS
from irgym.gym.registration import OTHERS
from irgym.policies.foreign import network_of
from irgym.policies.sb3_files import read_network, split_name

JIT_CSE = "irgym/JitCse-v0"
"""The environment's id."""


def evaluate_jit_cse(
    model: Any,
    *,
    evaluating: Evaluating = Evaluating(),
    target: str | None = None,
) -> Any:
    """Return what a model comes to on functions of `cse`, an `irgym.envs.cse.jitcse.evaluating.Evaluation`.

    Args:
        model: A model of Stable-Baselines3 that was trained on the environment without wrappers of
            observations, or the name of its file: `sb3:FILE`.
        evaluating: Data set of `cse`, by default `kernels`, which the environment draws from, and split.
        target: Target of LLVM; by default that of `cse`.

    Raises:
        IrgymError: Something that is named does not exist, or the model reads other observations.
        StorageError: The file is no model.
    """
    checked(evaluating, Evaluating)
    network = read_network(Path(split_name(model)[0])) if isinstance(model, str) else network_of(model)
    methods = replace(evaluating, dataset=evaluating.dataset or "kernels").uris(ENVIRONMENTS.load("cse"))
    module, _, kind = OTHERS[JIT_CSE].partition(":")
    env: Any = getattr(import_module(module), kind)(methods, target=target, max_cse=network.outputs - 1)
    try:
        shape: tuple[int, int] = env.observation_space.shape
        if network.inputs != shape[0] * shape[1]:
            raise IrgymError(
                f"the model reads {network.inputs} numbers, and {JIT_CSE} shows {shape[0] * shape[1]}: "
                "evaluate it in Python with its wrappers, by irgym.envs.cse.jitcse.evaluating.evaluate"
            )
        return env.evaluate(lambda: network.chooser(shape[0] + 1))
    finally:
        env.close()
