"""A trained policy: a network that chooses actions, and the small file that holds it."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray

from irgym.core.actions import CAPACITY, Action, ActionSpace, BoolArray, Mask
from irgym.core.errors import IrgymError, StorageError
from irgym.core.kinds import ActionKind
from irgym.nets import heads, storage
from irgym.nets.actor_critic import Actor, pair_scores_of
from irgym.nets.encoders import spec_from_dict
from irgym.nets.layout import LAYOUTS
from irgym.nets.q_ensemble import QEnsemble
from irgym.nets.q_network import QNetwork

FORMAT = 1


class TorchPolicy:
    """Implements `irgym.core.policy.Policy` with an actor, a Q-network, or several.

    Of Q-networks the probabilities are the softmax of the action values.

    Attributes:
        network: Scores actions.
        environment: Name of the environment that it was trained on.
        targets: Names of the targets that it was trained on; none where they are unknown, or where costs
            depend on no target.
    """

    def __init__(
        self, network: Actor | QNetwork | QEnsemble, environment: str = "", targets: tuple[str, ...] = ()
    ) -> None:
        self.network = network
        self.environment = environment
        self.targets = targets

    @property
    def space(self) -> ActionSpace:
        """The actions that it chooses among."""
        return self.network.layout.space

    @property
    def observation(self) -> str:
        """Name of the observation that it sees; empty: the task's default."""
        return self.network.encoder.observation

    @property
    def finite(self) -> bool:
        """Whether all weights, and the statistics that normalise inputs, are finite numbers."""
        return all(
            bool(value.isfinite().all())
            for value in self.network.state_dict().values()
            if value.is_floating_point()
        )

    @property
    def _pair_scores(self) -> NDArray[np.float32] | None:
        return pair_scores_of(self.network)

    def _scores(
        self, observations: Sequence[Any], masks: Sequence[Mask]
    ) -> tuple[NDArray[np.float32], BoolArray]:
        legal = self.network.layout.legal(masks)
        with torch.inference_mode():
            batch = self.network.encoder.collate(observations)
            scores = self.network.forward(batch, torch.as_tensor(legal)).numpy()
        return scores, legal

    def best(self, scores: NDArray[np.float32], legal: BoolArray) -> NDArray[np.int64]:
        """Return the best choices by the network's scores, shape [B, S]; see `act`."""
        choose = heads.likeliest if isinstance(self.network, Actor) else heads.greedy
        return choose(scores, legal, self.network.layout, self._pair_scores)

    def act(
        self,
        observations: Sequence[Any],
        masks: Sequence[Mask],
        rng: np.random.Generator | None,
        temperature: float = 1.0,
    ) -> list[Action]:
        """Return an action for each state: sampled with `rng`, or the best kind and parameters if None.

        Of those without `rng` an actor ends an episode with candidates where that is likelier than going on.

        Scores are divided by the temperature before sampling.

        Raises:
            IrgymError: An observation has not the shape that the policy was trained on.
        """
        if not observations:
            return []
        scores, legal = self._scores(observations, masks)
        layout = self.network.layout
        if rng is None:
            return layout.actions(self.best(scores, legal), masks)
        heated = scores / np.float32(temperature)
        pair_scores = None if self._pair_scores is None else self._pair_scores / np.float32(temperature)
        return layout.actions(
            heads.sample(heated, legal, layout, rng, pair_scores=pair_scores).choices, masks
        )

    def log_probability(
        self, observations: Sequence[Any], masks: Sequence[Mask], actions: Sequence[Action]
    ) -> NDArray[np.float64]:
        """Return the log-probability of one action for each of B states, shape [B].

        Raises:
            IrgymError: An observation has not the shape that the policy was trained on.
        """
        scores, legal = self._scores(observations, masks)
        layout = self.network.layout
        choices = torch.as_tensor(layout.choices(actions, masks))
        pair_scores = None if self._pair_scores is None else torch.as_tensor(self._pair_scores)
        evaluated = heads.evaluate(
            torch.as_tensor(scores), torch.as_tensor(legal), choices, layout, pair_scores
        )
        return evaluated.log_prob.numpy().astype(np.float64)

    def check(self, space: ActionSpace, observation: Any) -> None:
        """Make sure that the policy suits a task.

        Args:
            space: The task's actions.
            observation: Any observation of the task.

        Raises:
            IrgymError: The actions or the shape of the observation differ from those of the training.
        """
        if space != self.space:
            raise IrgymError(
                f"the policy was trained on other actions ({_names(self.space)}) than the task has "
                f"({_names(space)}): choose a policy trained on this environment"
            )
        self.network.encoder.collate([observation])

    def save(self, path: Path) -> None:
        """Write the weights with everything that is needed to use them.

        Raises:
            IrgymError: A weight is not finite.
            StorageError: The file cannot be written.
        """
        if not self.finite:
            raise IrgymError(f"the policy for {path} has weights that are not finite: train with a lower lr")
        content = {
            "kind": "policy",
            "format": FORMAT,
            "environment": self.environment,
            "targets": list(self.targets),
            "space": [
                [kind.name, [list(slot) for slot in kind.slots], kind.candidates, kind.ends]
                for kind in self.space.kinds
            ],
            "capacity": self.space.capacity,
            "network": self.network.kind,
            "layout": self.network.layout.kind,
            "encoder": self.network.spec.to_dict(),
            "members": len(self.network.members) if isinstance(self.network, QEnsemble) else 1,
            "observation": self.observation,
            # Copies: a learner's weights are views of one vector, which would be stored as a whole.
            "weights": {name: value.clone() for name, value in self.network.state_dict().items()},
        }
        storage.write(path, content)

    @staticmethod
    def load(path: Path) -> "TorchPolicy":
        """Read what `save` wrote.

        Raises:
            StorageError: The file is missing, damaged, no policy, or of a newer format.
        """
        content = storage.read(path, "policy")
        if content.get("format") != FORMAT:
            raise StorageError(
                f"{path} has policy format {content.get('format')}, this version reads {FORMAT}: "
                "use the version of irgym that wrote it"
            )
        try:
            policy = _restore(content)
        except (KeyError, TypeError, ValueError, RuntimeError) as error:
            raise StorageError(
                f"{path} is an incomplete policy: restore it from a copy or train again"
            ) from error
        if not policy.finite:
            raise StorageError(f"{path} holds weights that are not finite: train again with a lower lr")
        return policy


def _names(space: ActionSpace) -> str:
    return " ".join(kind.name for kind in space.kinds)


def _restore(content: dict[str, Any]) -> TorchPolicy:
    # Some policies that ship were written without candidates, what ends, capacity and observation.
    kinds = [
        ActionKind(
            name, tuple(tuple(slot) for slot in slots), candidates=any(more[:1]), ends=(*more[1:], None)[0]
        )
        for name, slots, *more in content["space"]
    ]
    space = ActionSpace(tuple(kinds), content.get("capacity", CAPACITY))
    spec = spec_from_dict(cast(dict[str, Any], content["encoder"]))
    layout = LAYOUTS[content["layout"]](space)
    ensemble = partial(QEnsemble, members=content.get("members", 1))
    networks = {Actor.kind: Actor, QNetwork.kind: QNetwork, QEnsemble.kind: ensemble}
    network = networks[content["network"]](spec, layout, content.get("observation", ""))
    network.load_state_dict(content["weights"])
    return TorchPolicy(network, content["environment"], tuple(map(str, content.get("targets", ()))))
