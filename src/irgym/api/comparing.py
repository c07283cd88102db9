"""`irgym.compare`: methods side by side on the same programs."""

import os
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from irgym.api.checks import budget, check_file, check_options, path_of, texts_of
from irgym.api.logged import later_loggers, log_comparison
from irgym.api.policies import GivenPolicies, named_methods
from irgym.api.programs import environment_named
from irgym.api.requests import Comparing, Measuring, checked
from irgym.base.errors import IrgymError
from irgym.base.files import lock_for
from irgym.comparing.comparison import ComparisonObserver, ComparisonPlan, Recorder, run_comparison
from irgym.comparing.results import Comparison, read_comparison
from irgym.core.catalogue import check_objective
from irgym.loggers.logger import Loggers
from irgym.policies.run_folder import RunFolder


def compare(
    environment: str,
    programs: Sequence[str | Path] = (),
    *,
    methods: Sequence[Any] | None = None,
    seconds: float | None = None,
    seed: int = 0,
    comparing: Comparing = Comparing(),
    measuring: Measuring = Measuring(),
    observer: ComparisonObserver | None = None,
) -> Comparison:
    """Compare methods on the same programs, side by side: searches, policies, other libraries.

    Args:
        environment: Name of the environment.
        programs: URIs or files; by default a split of the data set.
        methods: `base`, a default schedule, a search, `policy:NAME` (never worse than `base`), `raw:NAME`
            (the policy's final state as it is; comes with `policy:NAME`), `guided:NAME`, or a baseline, with
            options as in `beam:width=2,order=breadth`; a strategy, which the policy `default` leads if it
            needs one; a policy, as `irgym.policies.foreign.adapted` takes it, or a pair of a name and such a
            policy. By default the environment's own choice.
        seconds: Time of each search on each program, with its checks and comparisons; 10 if no number of
            evaluations is given. Methods without a search take what they take.
        seed: Seed of all random choices.
        comparing: Data set, other objectives, checks, and where the results are kept.
        measuring: Objective, back end, target and farm.
        observer: Sees each result and the progress.

    Raises:
        IrgymError: Something that is named does not exist or makes no sense, or there is nothing to compare.
        StorageError: A file cannot be written, another process writes it, or what is resumed is damaged.
    """
    limits = budget(checked(comparing, Comparing).evaluations, seconds)
    check_options(seed=seed)
    places = _places(comparing)
    found = environment_named(environment)
    others = texts_of(comparing.also, "objectives")
    for name in (checked(measuring, Measuring).objective, *others):
        check_objective(found, name)
    watching = observer or ComparisonObserver()
    named, given = named_methods(found.default_methods if methods is None else methods)
    plan = ComparisonPlan(
        environment=found,
        programs=comparing.uris(found, programs, watching.note),
        methods=named,
        budget=limits,
        seed=seed,
        backend=measuring.processor,
        target=measuring.target,
        objective=measuring.objective,
        also=others,
        limits=measuring.limits,
        validation_inputs=comparing.validation_inputs,
    )
    folder = None if comparing.run_folder is None else RunFolder(Path(comparing.run_folder))
    loggers = Loggers() if folder is None else later_loggers(folder)
    with ExitStack() as held:
        for place in {os.path.realpath(path): path for path in places}.values():
            held.enter_context(lock_for(place))
        done = _done(places) if comparing.resume else None
        bench = held.enter_context(measuring.bench(found))
        recorder = Recorder(places, watching)
        comparison = run_comparison(plan, bench, GivenPolicies(found, given), recorder, done)
    if folder is not None:
        log_comparison(loggers, folder, "comparison", comparison)
    return comparison


def _places(comparing: Comparing) -> list[Path]:
    """Return the files that keep the results.

    Raises:
        StorageError: One cannot be written.
    """
    file = None if comparing.json is None else path_of(comparing.json, "a file")
    folder = None if comparing.run_folder is None else path_of(comparing.run_folder, "a run folder")
    recorded = None if folder is None else RunFolder(folder).comparison
    places = [path for path in (file, recorded) if path is not None]
    for place in places:
        check_file(place)
    return places


def _done(places: Sequence[Path]) -> Comparison | None:
    """Return what an earlier run left; None where there is nothing to resume."""
    if not places:
        raise IrgymError("--resume needs the results so far: name their file by --json or --run-folder")
    return read_comparison(places[0])
