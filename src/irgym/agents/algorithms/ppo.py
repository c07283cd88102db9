"""Proximal policy optimisation (Schulman et al., arXiv 1707.06347) for masked, structured actions.

Extensions of the textbook algorithm follow MLIR RL (arXiv 2409.11068): epsilon exploration with separate
log-probabilities of the behaviour, separate value epochs, max-abs advantages, and reuse of past trajectories
with off-policy correction.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from irgym.agents.algorithms.actor_critic import ActorCriticConfig, ActorCriticLearner, explained_variance
from irgym.agents.archive.best import Archive
from irgym.agents.archive.scripts import sketch_script
from irgym.agents.divergence import ESTIMATORS, Estimator
from irgym.agents.episodes.advantages import (
    FloatArray,
    advantages_and_returns,
    group_advantages,
    normalise,
    risk_seeking_advantages,
)
from irgym.agents.episodes.played import Outcomes
from irgym.agents.episodes.trajectories import (
    Trajectories,
    join,
    select_episodes,
    trajectories_from_state,
    trajectories_state,
)
from irgym.agents.hyperparameters import Count, CountOrNone, Hyperparameters, Limit, Positive, Share, Weight
from irgym.agents.learner import Statistics
from irgym.agents.optimisation import Descent, anneal, clipped_error
from irgym.agents.problem import Problem
from irgym.base.errors import IrgymError
from irgym.base.values import Range
from irgym.networks import likelihood
from irgym.networks.encoders import Batch
from irgym.networks.transfer import moved


@dataclass(frozen=True)
class Reuse(Hyperparameters):
    """Learning again from past episodes, corrected off-policy (MLIR RL, arXiv 2409.11068).

    MLIR RL's code replaces new steps by past ones, drawn at random or by greatest absolute advantage. Here
    whole past episodes are added to the new ones.
    """

    reuse: Literal["none", "random", "top-k"] = "none"
    """Past episodes to learn from again: none, random ones, or those of the highest return."""
    reuse_episodes: Count = 32
    """Past episodes added to each iteration."""
    reuse_capacity: Count = 512
    """Number of past episodes to keep, the newest."""
    importance_limit: Positive = 2.0
    """Upper limit of the importance weights, as in V-trace's policy gradient (arXiv 1802.01561)."""


@dataclass(frozen=True)
class PPOConfig(Reuse, ActorCriticConfig):
    """Hyper-parameters of PPO."""

    name: ClassVar[str] = "PPO"
    epochs: Count = 4
    """Passes over the steps of an iteration."""
    minibatch: Count = 256
    """Steps in a gradient step."""
    group: Count = 1
    """Episodes on each drawn program. With more than 1, their mean return is the baseline, in place of the
    value function (GRPO, arXiv 2402.03300). `episodes` must be a multiple of it."""
    clip: Positive = 0.2
    """The probability ratio is clipped to 1 - clip .. 1 + clip."""
    epsilon: Annotated[float, Range(low=0, below=1)] = 0.0
    """Share of uniformly random legal actions at the start."""
    epsilon_end: Annotated[float, Range(low=0, below=1)] = 0.0
    """Share of uniformly random legal actions at the end."""
    value_epochs: CountOrNone = 0
    """0 trains policy and value jointly; more trains the value separately, for this many passes (as MLIR RL's
    code does)."""
    value_minibatch: Annotated[int | None, Range(low=1)] = None
    """Steps in a gradient step of separate value epochs; None for `minibatch`."""
    value_lr: Limit = None
    """Learning rate of separate value epochs at the start, annealed as `lr` is; None for `lr`."""
    value_clip: Limit = None
    """Distance of a value from its old one at which its loss is clipped (arXiv 2005.12729; 0.2 in MLIR RL's
    code); None for no limit."""
    risk: Share = 0.0
    """Share of a group's episodes to learn from, the best ones, by their excess over the others (risk-seeking
    policy gradient, arXiv 1912.04871); 0 for all."""
    started: CountOrNone = 0
    """Additional episodes of an iteration that start from the best ones so far, of the same program or
    another: see `irgym.agents.archive.best`."""
    sketched: Share = 0.0
    """Share of those that follow the environment's sketches instead: random schedules of a form that experts
    write, from which searches start too."""
    imitation: Weight = 0.0
    """Weight of self-imitation in each gradient step: the likelihood of the cheapest episodes so far, where
    their returns exceed the value function (arXiv 1806.05635)."""
    target_kl: Limit = None
    """Divergence from the old policy at which the epochs of an iteration end, as in OpenAI's Spinning Up and
    Stable-Baselines3; None for no limit."""
    kl_estimator: Estimator = "k3"
    """Estimator of that divergence, by its name in Schulman's "Approximating KL divergence": of the log ratio
    r of new to old probability, the mean of -r, of r^2 / 2 (as MLIR RL's code has), or of exp(r) - 1 - r."""
    normalise_over: Literal["iteration", "minibatch"] = "iteration"
    """Steps over which advantages are normalised: all of an iteration, or each minibatch (MLIR RL's code)."""
    recompute: bool = False
    """Before each pass, recompute values, advantages and the old log-probabilities with the present networks,
    and train separate values first, as MLIR RL's code does. The clip range then bounds a pass, not an
    iteration."""

    def build(self, problem: Problem) -> "PPO":
        """Return a learner at the beginning of its training.

        Raises:
            IrgymError: A value is invalid; the message says which.
        """
        self.check()
        if self.episodes % self.group:
            raise IrgymError(
                f"{self.episodes} episodes do not divide into groups of {self.group}: choose a multiple of it"
            )
        if self.group > 1 and self.reuse != "none":
            raise IrgymError("reuse and groups exclude each other: set reuse to none or group to 1")
        if self.risk > 0 and self.group == 1:
            raise IrgymError("risk is a share of the episodes on a program: set group to 2 or more")
        if self.sketched > 0 and not self.started:
            raise IrgymError("sketched is a share of the episodes of started: set started to 1 or more")
        if self.value_epochs == 0:
            for name in ("value_minibatch", "value_lr"):
                if getattr(self, name) is not None:
                    raise IrgymError(f"{name} is of separate value epochs: set value_epochs to 1 or more")
        if self.shared and self.value_epochs > 0:
            raise IrgymError(
                "value_epochs trains a separate value network: set shared to false or value_epochs to 0"
            )
        return PPO(self, problem)


REPORTED = ("entropy", "policy_loss", "value_loss", "kl", "clip_fraction")
"""Fields of `Statistics` that each gradient step reports."""

KL = REPORTED.index("kl")


class Steps(NamedTuple):
    """Batch of environment steps for gradient steps; each field has a row for each step."""

    observations: Batch
    legal: Tensor
    choices: Tensor
    old_logp: Tensor
    advantages: Tensor
    weights: Tensor
    returns: Tensor
    old_values: Tensor
    privileged: Tensor


class PPO(ActorCriticLearner[PPOConfig]):
    """PPO in training. `iterate` runs `collect`, `_estimate_advantages` and `_learn`, in this order.

    Attributes:
        past: Past episodes to learn from again, if the configuration reuses them.
        archive: The cheapest episode of each program, if the configuration uses it.
    """

    def __init__(self, config: PPOConfig, problem: Problem) -> None:
        super().__init__(config, problem)
        actor, everything = self.network.actor.parameters(), self.network.parameters()
        joint = config.value_epochs == 0
        self.descent = Descent(
            everything if joint else actor, config.lr, config.max_grad_norm, deadline=problem.deadline
        )
        self.value_descent: Descent | None = None
        if not joint:
            critic = self.network.critic_parameters()
            self.value_descent = Descent(
                critic, config.value_lr or config.lr, config.max_grad_norm, deadline=problem.deadline
            )
        self.past: Trajectories | None = None
        self.archive: Archive | None = None
        if config.started or config.imitation > 0:
            families = self.problem.families
            kinds = [f"{task.target_text} {families.get(task.uri, '')}" for task in self.problem.tasks]
            tasks = self.problem.tasks
            if config.sketched > 0:  # fail before any measurement if there are no sketches
                sketch_script(tasks[0], self.layout, np.random.default_rng(config.seed))
            self.archive = Archive(kinds, self.layout, self.encoder, config.gamma, tasks, config.sketched)

    def iterate(self) -> tuple[Outcomes, Statistics]:
        """Collect episodes, estimate advantages, and learn."""
        config = self.config
        epsilon = anneal(config.epsilon, config.epsilon_end, self.share)
        fresh, outcomes = self.collect(epsilon, config.group, self.archive, config.started)
        trajectories = fresh if config.reuse == "none" else self._with_past(fresh)
        lr = anneal(config.lr, config.lr_end, self.share)
        self.descent.set_lr(lr)
        if self.value_descent is not None:
            self.value_descent.set_lr(lr * (config.value_lr or config.lr) / config.lr)
        steps, explained = self._estimate_advantages(trajectories)
        statistics = self._learn(steps, trajectories)
        self.end_iteration(fresh)
        return outcomes, replace(statistics, explained_variance=explained, epsilon=epsilon, lr=lr)

    def _with_past(self, fresh: Trajectories) -> Trajectories:
        """Return the new episodes with some past ones, and keep the new ones for later."""
        config, past = self.config, self.past
        trajectories = fresh
        if past is not None:
            count = min(config.reuse_episodes, past.episodes)
            if config.reuse == "random":
                chosen = np.sort(self.rng.choice(past.episodes, count, replace=False))
            else:
                chosen = np.argsort(-past.returns(), kind="stable")[:count]
            old = select_episodes(past, chosen, self.encoder)
            trajectories = join(replace(old, policy_logp=self._log_probs(old)), fresh, self.encoder)
        pool = fresh if past is None else join(past, fresh, self.encoder)
        surplus = pool.episodes - config.reuse_capacity
        newest = np.arange(max(0, surplus), pool.episodes)
        self.past = pool if surplus <= 0 else select_episodes(pool, newest, self.encoder)
        return trajectories

    def _estimate_advantages(self, trajectories: Trajectories) -> tuple[Steps, float]:
        """Estimate advantages and returns; return the steps to learn from, and the explained variance."""
        config = self.config
        values = self.values(trajectories)
        ratios = np.exp(trajectories.policy_logp - trajectories.behaviour_logp)
        place = (trajectories.step, trajectories.episode)
        advantages, returns = (
            array[place]
            for array in advantages_and_returns(
                trajectories.grid(trajectories.rewards) * np.float32(self.scale.factor),
                trajectories.grid(values),
                trajectories.grid(ratios),
                config.gamma,
                config.gae_lambda,
            )
        )
        if config.group > 1:
            returns_of = trajectories.returns()
            advantages = (
                risk_seeking_advantages(returns_of, config.group, config.risk)
                if config.risk > 0
                else group_advantages(returns_of, config.group)
            )[trajectories.episode]
        # With r = new / behaviour and w = old / behaviour, clipping r to w (1 - clip) .. w (1 + clip)
        # equals w times the usual clipped objective, so w goes into the advantages.
        if config.normalise_over == "iteration":
            advantages = normalise(advantages, config.advantages)
        steps = Steps(
            trajectories.observations,
            torch.as_tensor(trajectories.legal),
            torch.as_tensor(trajectories.choices),
            torch.as_tensor(trajectories.policy_logp),
            torch.as_tensor(advantages),
            torch.as_tensor(np.minimum(ratios, config.importance_limit)),
            torch.as_tensor(returns),
            torch.as_tensor(values),
            torch.as_tensor(trajectories.privileged),
        )
        return steps, explained_variance(returns, values)

    def _learn(self, steps: Steps, trajectories: Trajectories) -> Statistics:
        """Take the gradient steps of an iteration; return the means of their statistics."""
        config = self.config
        weight = anneal(config.entropy, config.entropy_end, self.share)
        rows: list[Tensor] = []
        values = self._learn_values(steps) if config.recompute else {}
        for _ in range(config.epochs):
            if config.recompute:
                trajectories = replace(trajectories, policy_logp=self._log_probs(trajectories))
                steps, _ = self._estimate_advantages(trajectories)
            epoch = [
                self._policy_step(minibatch, weight)
                for minibatch in self._minibatches(steps, config.minibatch)
            ]
            rows += epoch
            if config.target_kl is not None and float(torch.stack(epoch)[:, KL].mean()) > config.target_kl:
                break
        means = dict(zip(REPORTED, map(float, torch.stack(rows).mean(dim=0)), strict=True))
        if not config.recompute:
            values = self._learn_values(steps)
        return Statistics(**(means | values), grad_norm=self.descent.mean_norm())

    def _policy_step(self, steps: Steps, entropy_weight: float) -> Tensor:
        """Take one gradient step on the clipped objective; return the quantities named in `REPORTED`."""
        config = self.config
        joint = self.value_descent is None
        if joint:
            scores, values = self.network.forward(steps.observations, steps.privileged)
        else:
            scores, values = self.network.actor.forward(steps.observations), steps.old_values
        pair_scores = self.network.actor.pair_scores
        evaluated = likelihood.evaluate(scores, steps.legal, steps.choices, self.layout, pair_scores)
        log_ratio = evaluated.log_prob - steps.old_logp
        ratio = log_ratio.exp()
        advantages = steps.advantages
        if config.normalise_over == "minibatch":
            advantages = torch.as_tensor(
                normalise(advantages.numpy(force=True), config.advantages), device=self.device
            )
        advantages = steps.weights * advantages
        surrogate = torch.minimum(
            ratio * advantages, ratio.clamp(1 - config.clip, 1 + config.clip) * advantages
        )
        policy_loss = -surrogate.mean()
        entropy = evaluated.entropy.mean()
        loss = policy_loss - entropy_weight * entropy
        value_loss = clipped_error(values, steps.returns, steps.old_values, self.config.value_clip)
        if joint:
            loss = loss + config.value_coefficient * value_loss
        if self.archive is not None and config.imitation > 0:
            loss = loss + config.imitation * self._imitation_loss(self.archive)
        self.descent.step(loss)
        with torch.no_grad():
            kl = ESTIMATORS[config.kl_estimator](log_ratio).mean()
            clipped = ((ratio - 1).abs() > config.clip).float().mean()
            return torch.stack([entropy, policy_loss, value_loss, kl, clipped])

    def _imitation_loss(self, archive: Archive) -> Tensor:
        """Return the self-imitation loss on a minibatch from the archive.

        This is the negative log-likelihood, weighted by the excess of the return over the value.
        """
        kept = archive.sample(self.config.minibatch, self.rng)
        if kept is None:
            return torch.zeros((), device=self.device)
        excess = kept.rewards * np.float32(self.scale.factor) - self.values(kept)
        weights = moved(torch.as_tensor(excess), self.device).clamp(min=0.0)
        return -(weights * self.evaluate(kept).log_prob).mean()

    def _learn_values(self, steps: Steps) -> dict[str, float | None]:
        """Take the gradient steps of the value function alone; return fields of `Statistics`.

        None are returned where the policy's steps train the value function too.
        """
        descent, size = self.value_descent, self.config.value_minibatch or self.config.minibatch
        if descent is None:
            return {}
        started = time.perf_counter()
        losses: list[Tensor] = []
        for _ in range(self.config.value_epochs):
            for minibatch in self._minibatches(steps, size):
                loss = clipped_error(
                    self._values(minibatch), minibatch.returns, minibatch.old_values, self.config.value_clip
                )
                descent.step(loss)
                losses.append(loss.detach())
        loss, seconds = float(torch.stack(losses).mean()), time.perf_counter() - started
        return {"value_loss": loss, "value_grad_norm": descent.mean_norm(), "values_s": seconds}

    def _values(self, steps: Steps) -> Tensor:
        return self.network.values(steps.observations, steps.privileged)

    def _minibatches(self, steps: Steps, size: int) -> Iterator[Steps]:
        """Yield all steps in random order, `size` at a time, on the device; the last may be fewer."""
        order = torch.as_tensor(self.rng.permutation(len(steps.returns)))
        shuffled = Steps(self.encoder.select(steps[0], order), *(tensor[order] for tensor in steps[1:]))
        for start in range(0, len(order), size):
            part = slice(start, start + size)
            rows = Steps(self.encoder.select(shuffled[0], part), *(tensor[part] for tensor in shuffled[1:]))
            yield moved(rows, self.device)

    def _log_probs(self, trajectories: Trajectories) -> FloatArray:
        """Return the log-probabilities of the taken actions under the current policy, shape [M]."""
        with torch.inference_mode():
            return self.evaluate(trajectories).log_prob.numpy(force=True)

    def state_dict(self) -> dict[str, Any]:
        """Return the complete state of the training, as tensors and plain values."""
        return {
            **super().state_dict(),
            "descent": self.descent.state_dict(),
            "value_descent": None if self.value_descent is None else self.value_descent.state_dict(),
            "past": None if self.past is None else trajectories_state(self.past),
            "archive": None if self.archive is None else self.archive.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state from `state_dict`; training then continues exactly."""
        super().load_state_dict(state)
        self.descent.load_state_dict(state["descent"])
        if self.value_descent is not None:
            self.value_descent.load_state_dict(state["value_descent"])
        self.past = None if state["past"] is None else trajectories_from_state(state["past"])
        if self.archive is not None:
            self.archive.load_state_dict(state["archive"])
