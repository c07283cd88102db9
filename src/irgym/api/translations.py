"""Names of other systems' options, with their names here; and what an unknown name may have meant.

The names are those of the systems' public code: MLIR RL's `config/example.json`
(https://github.com/mohph197/MLIR-RL-artifact), X-RLflow's `examples/run_ppo.py`
(https://github.com/ucamrl/xrlflow), RLlib's configuration, which LoopTune uses, and Stable-Baselines3's,
which the XLA Gym and the JIT CSE gymnasium use.
"""

from collections.abc import Collection
from dataclasses import dataclass
from difflib import get_close_matches

MLIR_RL, X_RLFLOW = "MLIR RL", "X-RLflow"
RLLIB, SB3 = "LoopTune (RLlib)", "XLA Gym, JIT CSE gym (Stable-Baselines3)"

CUTOFF = 0.6
"""Least similarity of a name that is suggested."""


@dataclass(frozen=True)
class Translation:
    """A name of another system, and the name here.

    Attributes:
        system: The other system.
        there: The name there.
        here: A hyper-parameter here, or an option with its dashes.
        note: How the values differ, if they do.
    """

    system: str
    there: str
    here: str
    note: str = ""

    @property
    def text(self) -> str:
        """The name here in words."""
        kind = f"the option {self.here}" if self.here.startswith("--") else self.here
        return f"{kind} ({self.note})" if self.note else kind


def _of(system: str, **names: str) -> tuple[Translation, ...]:
    """Return translations from `there="here"`, or `there="here; note"`."""
    split = [(there, *text.partition("; ")) for there, text in names.items()]
    return tuple(Translation(system, there, here, note) for there, here, _, note in split)


TRANSLATIONS = (
    *_of(
        MLIR_RL,
        bench_count="episodes",
        nb_iterations="--iterations",
        ppo_epochs="epochs",
        ppo_batch_size="minibatch",
        value_coef="value_coefficient",
        entropy_coef="entropy; 0 in place of an exploration without it",
        init_epsilon="epsilon; 0 in place of an exploration without it",
        normalize_adv="advantages",
        reuse_experience="reuse; top-k for topk",
        replay_count="reuse_capacity",
        value_batch_size="value_minibatch",
        truncate="--horizon; steps of a whole episode, not of an operation",
        json_file="--dataset",
        benchmarks_folder_path="--dataset",
        results_dir="--run",
    ),
    *_of(
        X_RLFLOW,
        learning_rate="lr",
        gamma_discount="gamma",
        clip_ratio="clip",
        global_norm="max_grad_norm",
        mini_batch_size="minibatch",
        update_round="epochs",
        episodes_per_batch="episodes",
        num_episodes="--iterations; that number divided by episodes",
        policy_feature="hidden",
        vf_feature="hidden",
        path="--dataset",
    ),
    *_of(
        RLLIB,
        sgd_minibatch_size="minibatch",
        num_sgd_iter="epochs",
        clip_param="clip",
        vf_clip_param="value_clip",
        entropy_coeff="entropy",
        vf_loss_coeff="value_coefficient",
        grad_clip="max_grad_norm",
        lambda_="gae_lambda",
        fcnet_hiddens="hidden",
        fcnet_activation="activation",
        kl_target="target_kl",
        train_batch_size="episodes; a number of episodes, not of steps",
        training_iteration="--iterations",
        num_workers="actors; of apex, or --farm local:N",
        trainer="--agent",
        num_gpus="--device; cuda for 1 or more",
    ),
    *_of(
        SB3,
        n_epochs="epochs",
        batch_size="minibatch",
        clip_range="clip",
        clip_range_vf="value_clip",
        ent_coef="entropy",
        vf_coef="value_coefficient",
        normalize_advantage="advantages; standard or none",
        net_arch="hidden",
        activation_fn="activation",
        buffer_size="replay",
        learning_starts="warmup",
        gradient_steps="updates",
        target_update_interval="target_every; in gradient steps",
        exploration_fraction="exploration",
        exploration_initial_eps="epsilon",
        exploration_final_eps="epsilon_end",
        total_timesteps="--iterations; a number of iterations, not of steps",
        algorithm="--agent",
    ),
)
"""Names that other systems' users know, grouped by system; none is a name here."""


def meant(name: str, options: Collection[str], hyperparameters: Collection[str] | None) -> str:
    """Return in words what an unknown name may have meant; empty where nothing is like it.

    Args:
        name: The unknown name.
        options: Names of options, with their dashes.
        hyperparameters: Names of hyper-parameters; None where any might exist.
    """
    plain = _plain(str(name))
    for translation in TRANSLATIONS:
        here = translation.here
        suits = (
            here in options if here.startswith("--") else hyperparameters is None or here in hyperparameters
        )
        if suits and translation.there.strip("_") == plain.strip("_"):
            return f"it is {translation.text} here"
    spelled = {_plain(known): known for known in (*options, *(hyperparameters or ()))}
    close = get_close_matches(plain, spelled, 1, CUTOFF)
    return f"did you mean {spelled[close[0]]}?" if close else ""


def _plain(name: str) -> str:
    return name.lower().lstrip("-").replace("-", "_")
