"""Policies of other libraries, from Python: models of Stable-Baselines3, TorchRL's modules, functions."""

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from irgym.base.errors import IrgymError
from irgym.core.actions import Action, ActionSpace, Mask
from irgym.core.candidates import CandidateObservation, padded
from irgym.core.choices import action_at, applicable, listed
from irgym.core.task import Task
from irgym.policies.policy import Policy
from irgym.policies.sb3 import Sb3Network
from irgym.policies.sb3_files import activation_named, suited


def adapted(given: Any, task: Task[Any]) -> Policy:
    """Return a policy for a task.

    Args:
        given: A policy; a model of Stable-Baselines3; a TorchRL module that reads `observation` and
            `action_mask`; or a function of an observation and a mask of Gymnasium's view, which returns an
            element of its space of actions, an `Action`, or the text of one. Its attribute `observation`, if
            it has one, names the observation.
        task: What it is to act on.

    Raises:
        IrgymError: It is none of these, or does not suit the task.
    """
    if hasattr(given, "act") and hasattr(given, "observation"):
        check = getattr(given, "check", None)  # only those that were trained know what they suit
        if check is not None:
            check(task.space, task.observe(task.initial(), given.observation))
        return given
    if hasattr(given, "predict") and hasattr(given, "policy"):
        return suited(network_of(given), task)
    if not callable(given):
        raise IrgymError(f"{given!r} is no policy: give one, the name of one that ships, or a run folder")
    observation: Any = getattr(given, "observation", "")
    name = observation if isinstance(observation, str) else ""
    if hasattr(given, "in_keys") and hasattr(given, "out_keys"):
        return ModulePolicy(given, task.space, name)
    return FunctionPolicy(cast(Callable[[Any, Any], Any], given), task.space, name)


def name_of(given: Any) -> str:
    """Return the name of a policy in tables: that of a function or of a class."""
    own: Any = getattr(given, "__name__", "")
    return own if isinstance(own, str) and own and own != "<lambda>" else type(given).__name__


def network_of(model: Any) -> Sb3Network:
    """Return the network of a model of Stable-Baselines3, its weights copied.

    Raises:
        IrgymError: The model has layers that only the model's code can run.
    """
    weights = {name: value.detach().cpu().numpy().copy() for name, value in model.policy.state_dict().items()}
    options: dict[str, Any] = model.policy_kwargs or {}
    activation = activation_named(str(options.get("activation_fn") or ""), type(model.policy).__module__)
    return Sb3Network(weights, activation)


class FunctionPolicy:
    """A function as a policy, which chooses the same action whenever it is asked.

    Attributes:
        observation: Name of the observation that it reads; empty: the default.
    """

    def __init__(self, function: Callable[[Any, Any], Any], space: ActionSpace, observation: str) -> None:
        self.observation = observation
        self._function = function
        self._space = space

    def act(
        self,
        observations: Sequence[Any],
        masks: Sequence[Mask],
        rng: np.random.Generator | None,
        temperature: float = 1.0,
    ) -> list[Action]:
        """Return an action for each state.

        Raises:
            IrgymError: The function returned no action, or one that does not apply.
        """
        del rng, temperature
        return [self._chosen(seen, mask) for seen, mask in zip(observations, masks, strict=True)]

    def _chosen(self, observation: Any, mask: Mask) -> Action:
        chosen = self._function(_shown(observation, self._space), applicable(self._space, mask))
        action = self._action(chosen, mask)
        if action is None or not self._space.allows(mask, action):
            raise IrgymError(
                f"the policy {name_of(self._function)} chose {chosen!r}, which does not apply here"
            )
        return action

    def _action(self, chosen: Any, mask: Mask) -> Action | None:
        if isinstance(chosen, Action):
            return chosen
        if isinstance(chosen, str):
            return self._space.parse(chosen)
        sizes = [len(applicable(self._space, mask))] if listed(self._space) else list(self._space.dimensions)
        places: NDArray[Any] = np.atleast_1d(np.asarray(chosen))
        if places.shape != (len(sizes),) or places.dtype.kind not in "iu":
            return None
        if not bool(np.all((places >= 0) & (places < sizes))):
            return None
        return action_at(self._space, places[0] if listed(self._space) else places, mask)


class ModulePolicy:
    """A TorchRL module as a policy: the best of its `logits` or `action_value`, or else its `action`.

    Attributes:
        observation: Name of the observation that it reads; empty: the default.
    """

    def __init__(self, module: Any, space: ActionSpace, observation: str) -> None:
        self.observation = observation
        self._module = module
        self._space = space
        if not listed(space):
            raise IrgymError(
                "these actions are too many to list, as a TorchRL module scores them: give a function"
            )

    def act(
        self,
        observations: Sequence[Any],
        masks: Sequence[Mask],
        rng: np.random.Generator | None,
        temperature: float = 1.0,
    ) -> list[Action]:
        """Return an action for each state: sampled with `rng`, or the most probable where it is None.

        Raises:
            IrgymError: The module gives neither scores nor actions of the right shape.
        """
        if not observations:
            return []
        legal = np.stack([applicable(self._space, mask) for mask in masks])
        scores = self._scores(observations, legal)
        if rng is not None:
            scores = scores / temperature + rng.gumbel(size=scores.shape)
        places = np.where(legal, scores, -np.inf).argmax(axis=-1).tolist()
        return [action_at(self._space, place, mask) for place, mask in zip(places, masks, strict=True)]

    def _scores(self, observations: Sequence[Any], legal: NDArray[np.bool_]) -> NDArray[np.float64]:
        from importlib import import_module  # late: a module of TorchRL has torch and tensordict

        torch, tensordict = import_module("torch"), import_module("tensordict")
        seen = np.stack([_shown(observation, self._space) for observation in observations])
        content = {"observation": torch.as_tensor(seen), "action_mask": torch.as_tensor(legal)}
        with torch.no_grad():
            out: Any = self._module(tensordict.TensorDict(content, batch_size=[len(seen)]))
        key = next((key for key in ("logits", "action_value", "action") if key in out.keys()), None)  # noqa: SIM118
        value: NDArray[Any] = np.zeros(0) if key is None else out[key].cpu().numpy()
        if value.shape == (len(seen),) and value.dtype.kind in "iu":
            value = np.eye(legal.shape[1])[value]
        if value.shape != legal.shape:
            raise IrgymError(
                "the module must give logits, action_value or action for each of the "
                f"{legal.shape[1]} actions: choose its out_keys so"
            )
        return value.astype(np.float64)


def _shown(observation: Any, space: ActionSpace) -> Any:
    """Return an observation as Gymnasium's view shows it."""
    return (
        padded(observation, space.capacity) if isinstance(observation, CandidateObservation) else observation
    )
