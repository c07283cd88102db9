"""`irgym tune`."""

import importlib.util
from dataclasses import dataclass
from pathlib import Path

from tyro.conf import Positional

from irgym.cli.finding import data_of, print_finding
from irgym.cli.options import budget, check_export, check_file, check_seed, task_of
from irgym.cli.output import console, load_policy, write_json
from irgym.core.environment import Environment, environment_of
from irgym.core.errors import IrgymError
from irgym.evaluate.tuning import tune
from irgym.search import SEARCHES
from irgym.search.session import needs_policy


@dataclass(frozen=True)
class Tune:
    """Find the best schedule for a program, check its results, and say how good it is."""

    uri: Positional[str]
    """The program, such as loops://mm/128x128x128."""
    search: str | None = None
    """Search strategy; by default `guided` where there is a policy, else `evolutionary`."""
    policy: str | None = None
    """Policy that leads the search: the name of one that ships (`default`), or a run folder."""
    seconds: float | None = None
    """Time for the search; 10 where neither this nor the number of evaluations is given."""
    evaluations: int | None = None
    """Number of distinct candidates to evaluate."""
    seed: int = 0
    """Seed of all random choices."""
    objective: str | None = None
    """What is minimised, such as `time`; by default the environment's own objective."""
    backend: str | None = None
    """Back end; by default the preferred one that runs here."""
    target: str | None = None
    """What code is made for, such as x86-64-v3 (AVX2); by default this machine."""
    farm: str | None = None
    """Where to measure: local:N, dask://HOST:PORT or slurm?workers=N; by default in one process here."""
    export: Path | None = None
    """Write the result to this file, usable without irgym; its suffix chooses the form."""
    json: Path | None = None
    """Write the result as JSON to this file."""

    def run(self) -> None:
        """Search, confirm, print, export."""
        limits = budget(self.evaluations, self.seconds)
        check_seed(self.seed)
        check_file(self.json)
        environment = environment_of(self.uri)
        task = task_of(environment, self.uri, self.backend, self.target, self.objective)
        check_export(task, self.export)
        name, policy_name = self._method(environment)
        strategy = SEARCHES.load(name)()
        policy = None if policy_name is None else load_policy(environment, policy_name, task)
        label = f"{name} search" + ("" if policy_name is None else f" led by policy {policy_name}")
        out = console()
        with environment.bench(self.farm, self.backend) as bench, out.status(f"{task.uri}: {label}"):
            finding, result = tune(environment, bench, task, strategy, limits, self.seed, policy)
            data = data_of(environment, bench, task, finding) | {
                "search": label,
                "evaluations": result.evaluations,
                "seconds": result.seconds,
            }
        print_finding(out, task, finding, data)
        write_json(self.json, data)
        for file in task.export(finding.state, self.export) if self.export else ():
            print(f"written: {file}")

    def _method(self, environment: Environment) -> tuple[str, str | None]:
        """Return the names of the search and of the policy; the output says which were chosen."""
        led = self.search is not None and needs_policy(SEARCHES.load(self.search)())
        if self.policy is not None and self.search is not None and not led:
            raise IrgymError(f"the search {self.search} takes no policy: choose guided or rollout")
        if self.policy is not None or led:
            return self.search or "guided", "default" if self.policy is None else self.policy
        if self.search is None and "default" in environment.policies() and importlib.util.find_spec("torch"):
            return "guided", "default"
        return self.search or "evolutionary", None
