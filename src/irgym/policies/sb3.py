"""Models of Stable-Baselines3 and sb3-contrib as policies: their weights, run in numpy.

So a model needs neither library in use, and none of the pickled objects in its file is opened. Each of their
standard policies scores actions by a perceptron; a recurrent one has an LSTM before it.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from irgym.base.errors import IrgymError
from irgym.core.actions import Action, ActionSpace, BoolArray, Mask
from irgym.core.candidates import CandidateObservation, list_length, list_mask, padded
from irgym.core.choices import action_at, applicable, listed
from irgym.core.limits import UNLIMITED, Limits

FloatArray = NDArray[np.float32]

SB3 = "sb3"
"""The network of policy files that hold such a model."""

ROOTS = ("mlp_extractor.policy_net", "q_net.q_net", "quantile_net.quantile_net", "action_net")
"""Prefixes of the hidden layers of actors, of Q-networks, of quantile networks, and of ARS's policy."""

OWN_FEATURES = re.compile(r"(pi_|vf_)?features_extractor\.")
"""Weights before the perceptron, which only the model's code can run."""

MEMORY = "lstm_actor"
"""Prefix of a recurrent policy's LSTM."""


@dataclass(frozen=True)
class Sb3Network:
    """The part of a model that scores actions.

    Attributes:
        weights: The model's weights by name, those of critics and targets among them.
        activation: `tanh` or `relu`.

    Raises:
        IrgymError: The model has layers that only the model's code can run.
    """

    weights: Mapping[str, FloatArray]
    activation: str

    def __post_init__(self) -> None:
        if any(OWN_FEATURES.match(name) for name in self.weights):
            raise IrgymError(
                "the model has a features extractor of another kind: train one with MlpPolicy, or give a "
                "function from Python that calls its predict"
            )
        if not self._layers:
            raise IrgymError("the model has no layers that score actions: train one with MlpPolicy")

    @property
    def _root(self) -> str:
        return next((root for root in ROOTS if any(name.startswith(f"{root}.") for name in self.weights)), "")

    @property
    def _layers(self) -> list[str]:
        """Prefixes of the layers in order."""
        root = self._root
        found = [re.fullmatch(rf"{re.escape(root)}\.(\d+)\.weight", name) for name in self.weights]
        layers = [f"{root}.{number}" for number in sorted(int(match[1]) for match in found if match)]
        return [*layers, "action_net"] if "action_net.weight" in self.weights else layers

    @property
    def recurrent(self) -> bool:
        """Whether it remembers the steps before."""
        return any(name.startswith(f"{MEMORY}.") for name in self.weights)

    @property
    def inputs(self) -> int:
        """Numbers in an observation."""
        first = f"{MEMORY}.weight_ih_l0" if self.recurrent else f"{self._layers[0]}.weight"
        return self.weights[first].shape[1]

    @property
    def outputs(self) -> int:
        """Scores, or quantiles of all actions."""
        return self.weights[f"{self._layers[-1]}.weight"].shape[0]

    @property
    def quantiles(self) -> bool:
        """Whether it has several values for each action, whose mean counts."""
        return self._root.startswith("quantile_net")

    @property
    def finite(self) -> bool:
        """Whether all weights are finite numbers."""
        return all(bool(np.isfinite(value).all()) for value in self.weights.values())

    @property
    def memory(self) -> list[tuple[FloatArray, FloatArray]]:
        """Memory at the start of an episode: hidden and cell state of each layer, each of shape [H]."""
        sizes = [
            value.shape[1]
            for name, value in sorted(self.weights.items())
            if name.startswith(f"{MEMORY}.weight_hh_l")
        ]
        return [(np.zeros(size, np.float32), np.zeros(size, np.float32)) for size in sizes]

    def scores(
        self, seen: FloatArray, memory: Sequence[tuple[FloatArray, FloatArray]], actions: int
    ) -> tuple[FloatArray, list[tuple[FloatArray, FloatArray]]]:
        """Return scores of shape [B, actions], and the memory after.

        Args:
            seen: Observations, shape [B, F].
            memory: Hidden and cell states of each LSTM layer, each of shape [B, H]; empty without an LSTM.
            actions: Number of scores.
        """
        values, after = seen, list[tuple[FloatArray, FloatArray]]()
        for layer, (hidden, cell) in enumerate(memory):
            after.append(self._remember(layer, values, hidden, cell))
            values = after[-1][0]
        layers = self._layers
        for layer in layers:
            values = values @ self.weights[f"{layer}.weight"].T
            bias = self.weights.get(f"{layer}.bias")
            values = values if bias is None else values + bias
            if layer != layers[-1]:
                values = np.tanh(values) if self.activation == "tanh" else np.maximum(values, 0)
        if self.quantiles:
            values = values.reshape(len(values), -1, actions).mean(axis=1)
        return values, after

    def chooser(self, actions: int) -> Callable[[NDArray[Any], BoolArray], int]:
        """Return a function that chooses the actions of an episode, from its first observation on.

        Args:
            actions: Number of actions; the function takes an observation and a mask of so many.
        """
        memory = [(hidden[None], cell[None]) for hidden, cell in self.memory]

        def choose(observation: NDArray[Any], mask: BoolArray) -> int:
            nonlocal memory
            seen = observation.astype(np.float32).reshape(1, -1)
            scores, memory = self.scores(seen, memory, actions)
            return int(np.where(mask, scores[0], -np.inf).argmax())

        return choose

    def _remember(
        self, layer: int, seen: FloatArray, hidden: FloatArray, cell: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the hidden and cell state of an LSTM layer after a step, as torch.nn.LSTM documents it."""
        names = [f"{MEMORY}.{part}_l{layer}" for part in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
        of_input, of_hidden, bias, more = (self.weights[name] for name in names)
        gates = seen @ of_input.T + hidden @ of_hidden.T + bias + more
        write, forget, new, show = np.split(gates, 4, axis=-1)
        cell = _sigmoid(forget) * cell + _sigmoid(write) * np.tanh(new)
        return _sigmoid(show) * np.tanh(cell), cell


class Sb3Policy:
    """Implements `irgym.policies.policy.Policy` with such a network, and remembers episodes if that does.

    Scores of actions that do not apply are left out, whether or not the training had masks. In a state with
    more candidates than the space's capacity, it sees only the first ones.

    Attributes:
        network: The network.
        space: The actions.
        observation: Name of the observation that it reads; empty: the default.
        environment: Name of the environment that it was trained on, where that is known.
        targets: Names of the targets that it was trained on, where they are known.
        limits: The limits of the episodes that it was trained in.
    """

    def __init__(
        self,
        network: Sb3Network,
        space: ActionSpace,
        observation: str = "",
        environment: str = "",
        targets: tuple[str, ...] = (),
        limits: Limits = UNLIMITED,
    ) -> None:
        self.network = network
        self.space = space
        self.observation = observation
        self.environment = environment
        self.targets = targets
        self.limits = limits

    @property
    def finite(self) -> bool:
        """Whether all weights are finite numbers."""
        return self.network.finite

    def check(self, space: ActionSpace, observation: Any) -> None:
        """Check that the policy suits a task.

        Raises:
            IrgymError: The actions or the size of the observation differ from those of the training.
        """
        count = choices_of(space)
        fits = self.network.outputs % count == 0 if self.network.quantiles else self.network.outputs == count
        if not fits or space != self.space:
            raise IrgymError(
                f"the model scores {self.network.outputs} choices and the task has {count}, or others: "
                "choose a model that was trained on this environment"
            )
        size = flat(observation, space).size
        if size != self.network.inputs:
            raise IrgymError(
                f"the model reads observations of {self.network.inputs} numbers, and these have {size}: "
                "choose the observation that it was trained on"
            )

    def probabilities(self, observations: Sequence[Any], masks: Sequence[Mask]) -> list[NDArray[np.float64]]:
        """Return for each state the probability of every place in the flat view; 0 where it does not apply.

        For a Q-learner it is the softmax of the action values.

        Raises:
            IrgymError: The actions are too many to list.
        """
        if not observations:
            return []
        legal = np.stack([list_mask(self.space, mask) for mask in masks])
        scores = np.where(legal, self.scored(observations, self._start(len(masks)))[0], -np.inf)
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        return list(weights / weights.sum(axis=-1, keepdims=True))

    def act(
        self,
        observations: Sequence[Any],
        masks: Sequence[Mask],
        rng: np.random.Generator | None,
        temperature: float = 1.0,
    ) -> list[Action]:
        """Return an action for each state: sampled with `rng`, or the most probable where it is None.

        Scores are divided by the temperature before sampling. A recurrent policy takes each state for the
        first of an episode; `playing` remembers.
        """
        if not observations:
            return []
        scores, _ = self.scored(observations, self._start(len(masks)))
        return self.chosen(scores, masks, rng, temperature)

    def playing(self) -> "Sb3Playing | None":
        """Return the policy with a memory for some episodes; None where it needs none."""
        return Sb3Playing(self) if self.network.recurrent else None

    def chosen(
        self,
        scores: NDArray[np.float64],
        masks: Sequence[Mask],
        rng: np.random.Generator | None,
        temperature: float,
    ) -> list[Action]:
        """Return an action for each row of scores; see `act`."""
        if rng is not None:
            # Gumbel-max: the argmax of scores plus this noise is a sample of their softmax.
            scores = scores / temperature + rng.gumbel(size=scores.shape)
        legal: BoolArray = np.stack([applicable(self.space, mask) for mask in masks])
        scores = np.where(legal, scores, -np.inf)
        places: Sequence[Any] = scores.argmax(axis=-1).tolist()
        if not listed(self.space):
            parts = np.split(scores, np.cumsum(self.space.dimensions)[:-1], axis=-1)
            vectors: NDArray[np.int64] = np.stack([part.argmax(axis=-1) for part in parts], axis=-1)
            places = [vectors[row] for row in range(len(vectors))]
        return [action_at(self.space, place, mask) for place, mask in zip(places, masks, strict=True)]

    def scored(
        self, observations: Sequence[Any], memory: Sequence[tuple[FloatArray, FloatArray]]
    ) -> tuple[NDArray[np.float64], list[tuple[FloatArray, FloatArray]]]:
        """Return the scores of all choices, those of all dimensions joined, and the memory after."""
        seen = np.stack([flat(observation, self.space) for observation in observations])
        scores, after = self.network.scores(seen, memory, choices_of(self.space))
        return scores.astype(np.float64), after

    def _start(self, count: int) -> list[tuple[FloatArray, FloatArray]]:
        return [
            (np.tile(hidden, (count, 1)), np.tile(cell, (count, 1))) for hidden, cell in self.network.memory
        ]


class Sb3Playing:
    """A recurrent policy in episodes that are played from their start, step by step."""

    def __init__(self, policy: Sb3Policy) -> None:
        self._policy = policy
        self._memory: dict[int, list[tuple[FloatArray, FloatArray]]] = {}

    def act(
        self,
        episodes: Sequence[int],
        observations: Sequence[Any],
        masks: Sequence[Mask],
        rng: np.random.Generator | None,
        temperature: float = 1.0,
    ) -> list[Action]:
        """Return the next action of each of some episodes; the other arguments are as for `Policy.act`."""
        rows = [self._memory.get(episode, self._policy.network.memory) for episode in episodes]
        joined = [
            (np.stack([row[layer][0] for row in rows]), np.stack([row[layer][1] for row in rows]))
            for layer in range(len(self._policy.network.memory))
        ]
        scores, after = self._policy.scored(observations, joined)
        for place, episode in enumerate(episodes):
            self._memory[episode] = [(hidden[place], cell[place]) for hidden, cell in after]
        return self._policy.chosen(scores, masks, rng, temperature)


def choices_of(space: ActionSpace) -> int:
    """Return the number of choices of Gymnasium's space of actions, those of all dimensions joined."""
    return list_length(space) if listed(space) else sum(space.dimensions)


def flat(observation: Any, space: ActionSpace) -> FloatArray:
    """Return an observation as the models read it, shape [F].

    Raises:
        IrgymError: It is no array.
    """
    shown = (
        padded(observation, space.capacity) if isinstance(observation, CandidateObservation) else observation
    )
    if not isinstance(shown, np.ndarray):
        raise IrgymError("the model reads arrays of numbers: choose an observation that is one")
    return shown.astype(np.float32).ravel()


def _sigmoid(values: NDArray[Any]) -> FloatArray:
    return (1.0 / (1.0 + np.exp(-values))).astype(np.float32)
