"""Evaluation of models on the JIT CSE gymnasium's environment, beside the compiler's own heuristic."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import import_module
from math import prod
from pathlib import Path
from typing import Any, cast

import gymnasium

from irgym.api.objects import module_named
from irgym.api.policies import MADE as NAMED
from irgym.api.requests import Evaluating, checked
from irgym.base.errors import IrgymError
from irgym.core.catalogue import ENVIRONMENTS
from irgym.gym.registration import OTHERS
from irgym.policies.foreign import network_of
from irgym.policies.sb3_files import read_network, split_name

JIT_CSE = "irgym/JitCse-v0"
"""The environment's id."""

EVALUATING = "irgym.envs.cse.jitcse.evaluating"
"""Module of the evaluation, imported on use."""


def evaluate_jit_cse(
    model: Any,
    *,
    evaluating: Evaluating = Evaluating(),
    target: str | None = None,
    wrappers: Sequence[str] = (),
) -> Any:
    """Return what a model comes to on functions of `cse`, an `irgym.envs.cse.jitcse.evaluating.Evaluation`.

    Args:
        model: A model of Stable-Baselines3 that was trained on the environment, or the name of its file:
            `sb3:FILE`.
        evaluating: Data set of `cse`, by default `kernels`, which the environment draws from, and split.
        target: Target of LLVM; by default that of `cse`.
        wrappers: The wrappers of its training, the innermost first: `package.module:Class`, or
            `folder/file.py:function`, each called with the environment.

    Raises:
        IrgymError: Something that is named does not exist, a wrapper fails, or the model reads other
            observations.
        StorageError: The file is no model.
    """
    checked(evaluating, Evaluating)
    network = read_network(Path(split_name(model)[0])) if isinstance(model, str) else network_of(model)
    methods = replace(evaluating, dataset=evaluating.dataset or "kernels").uris(ENVIRONMENTS.load("cse"))
    module, _, kind = OTHERS[JIT_CSE].partition(":")
    made = [_wrapper(name) for name in wrappers]
    env: Any = getattr(import_module(module), kind)(methods, target=target, max_cse=network.outputs - 1)
    try:
        wrapped = env
        for name, wrap in zip(wrappers, made, strict=True):
            wrapped = _wrapped(wrapped, name, wrap)
        shown = prod(wrapped.observation_space.shape)
        if network.inputs != shown:
            around = f" with {', '.join(wrappers)}" if wrappers else ""
            raise IrgymError(
                f"the model reads {network.inputs} numbers, and {JIT_CSE}{around} shows {shown}: name the "
                "wrappers of its training by --wrap package.module:Class, in Python wrappers=[...]"
            )
        evaluate = import_module(EVALUATING).evaluate
        return evaluate(wrapped, lambda: network.chooser(network.outputs), methods)
    finally:
        env.close()


def _wrapper(name: str) -> Callable[[object], object]:
    """Return the wrapper of a name.

    Raises:
        IrgymError: There is none.
    """
    named = NAMED.fullmatch(name)
    if named is None:
        raise IrgymError(f"{name!r} names no wrapper: write package.module:Class or folder/file.py:function")
    found: object = getattr(module_named(named[1]), named[2], None)
    if not callable(found):
        raise IrgymError(f"{named[1]} has no {named[2]}: name a wrapper of Gymnasium")
    return found


def _wrapped(env: object, name: str, wrap: Callable[[object], object]) -> Any:
    """Return an environment in a wrapper.

    Raises:
        IrgymError: The wrapper cannot be made of it, or is none.
    """
    try:
        wrapped = wrap(env)
    except Exception as error:
        raise IrgymError(
            f"{name} raised {type(error).__name__} ({error}): name a wrapper that takes the environment alone"
        ) from error
    if not isinstance(wrapped, gymnasium.Env):
        raise IrgymError(f"{name} returns {type(wrapped).__name__}, no environment: name a wrapper")
    return cast(Any, wrapped)
