"""The comparison at the end of a training: its policy beside the environment's other methods."""

from collections.abc import Callable
from dataclasses import replace

from irgym.api.comparing import compare
from irgym.api.requests import Comparing, Measuring, Training
from irgym.comparing.rows import POLICY
from irgym.core.environment import DEFAULT, Environment
from irgym.policies.run_folder import RunFolder


def compare_at_end(
    environment: Environment,
    folder: RunFolder,
    training: Training,
    measuring: Measuring,
    seed: int,
    note: Callable[[str], None] | None = None,
) -> None:
    """Compare the policy of a run with the environment's other methods on the test programs.

    The run folder keeps the result. A training for several targets is compared on this machine.

    Raises:
        IrgymError: The data set has no test programs.
        StorageError: The folder cannot be written.
    """
    others = [method for method in environment.default_methods if not method.endswith(f":{DEFAULT}")]
    if note is not None:
        note(f"comparing the policy with {', '.join(others)} on the test programs")
    compare(
        environment.name,
        methods=[*others, f"{POLICY}:{folder.path}"],
        seconds=training.compare_at_end,
        seed=seed,
        comparing=Comparing(
            dataset=training.dataset,
            holdout=training.holdout,
            limit=training.evaluate_limit,
            run_folder=folder.path,
        ),
        measuring=measuring if len(measuring.targets) == 1 else replace(measuring, target=None),
    )
