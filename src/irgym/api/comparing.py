"""`irgym.compare`: methods side by side on the same programs."""

import os
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from irgym.api.checks import budget, check_file, check_options, check_whole, path_of, texts_of
from irgym.api.programs import environment_named
from irgym.base.errors import IrgymError, ProgramError
from irgym.base.files import lock_for
from irgym.base.json_files import write_json
from irgym.comparing.comparison import ComparisonObserver, ComparisonPlan, run_comparison
from irgym.comparing.results import Comparison, read_comparison
from irgym.core.catalogue import check_objective, dataset_named, locate
from irgym.core.environment import spread
from irgym.policies.run_folder import RunFolder


def compare(
    environment: str,
    programs: Sequence[str | Path] = (),
    *,
    methods: Sequence[str] | None = None,
    dataset: str | None = None,
    split: str = "test",
    limit: int | None = None,
    seconds: float | None = None,
    evaluations: int | None = None,
    seed: int = 0,
    objective: str | None = None,
    also: Sequence[str] = (),
    inputs: int | None = None,
    backend: str | None = None,
    target: str | None = None,
    farm: str | None = None,
    json: str | Path | None = None,
    run_folder: str | Path | None = None,
    resume: bool = False,
    observer: ComparisonObserver | None = None,
) -> Comparison:
    """Compare methods on the same programs, side by side: searches, policies, other libraries.

    Args:
        environment: Name of the environment.
        programs: URIs or files; by default a split of the data set.
        methods: `base`, a default schedule, a search, `policy:NAME` (never worse than `base`), `raw:NAME`
            (the policy's final state as it is; comes with `policy:NAME`), `guided:NAME`, or a baseline; by
            default the environment's own choice.
        dataset: Name of a data set; by default the environment's own.
        split: Which programs of the data set, `train` or `test`.
        limit: Only this many programs, evenly spread over the split.
        seconds: Time for each search on each program; 10 where no number of evaluations is given.
        evaluations: Number of distinct candidates for each search on each program.
        seed: Seed of all random choices.
        objective: What is minimised, such as `time`; by default the environment's own objective.
        also: Other objectives under which the schedules found are measured too.
        inputs: Random inputs on which each result is checked, 0 for no checks; by default the environment's
            own number.
        backend: Back end; by default the preferred one that runs here.
        target: What code is made for, such as x86-64-v3 (AVX2); by default this machine.
        farm: Where to measure: local:N, dask://HOST:PORT or slurm?workers=N; by default one process here.
        json: File that holds the comparison as JSON, kept up to date while it runs.
        run_folder: Run folder that holds the same, for a report.
        resume: Continue with the results in the JSON file, or else in the run folder.
        observer: Is told of each result and of the progress.

    Raises:
        IrgymError: Something that is named does not exist or makes no sense, or there is nothing to compare.
        StorageError: A file cannot be written, another process writes it, or what is resumed is damaged.
    """
    limits = budget(evaluations, seconds)
    few = f"{inputs} inputs check nothing: give at least 1, or 0 for no checks"
    check_whole(inputs, "inputs", 0, few)
    check_options(seed=seed, limit=limit, dataset=dataset, split=split, farm=farm)
    check_options(objective=objective, backend=backend, target=target)
    others = texts_of(also, "objectives")
    file = None if json is None else path_of(json, "a file")
    recorded = None if run_folder is None else RunFolder(path_of(run_folder, "a run folder")).comparison
    check_file(file)
    check_file(recorded)
    found = environment_named(environment)
    for name in (objective, *others):
        check_objective(found, name)
    uris = _uris(programs) or spread(dataset_named(found, dataset).split(split), limit)
    plan = ComparisonPlan(
        environment=found,
        programs=tuple(uris),
        methods=found.default_methods if methods is None else texts_of(methods, "methods"),
        budget=limits,
        seed=seed,
        backend=backend,
        target=target,
        objective=objective,
        also=others,
        inputs=inputs,
    )
    places = [path for path in (file, recorded) if path is not None]
    with ExitStack() as held:
        for place in {os.path.realpath(path): path for path in places}.values():
            held.enter_context(lock_for(place))
        done = _done(places) if resume else None
        bench = held.enter_context(found.bench(farm, backend))
        recorder = _Recorder(places, observer or ComparisonObserver())
        comparison = run_comparison(plan, bench, observer=recorder, done=done)
        recorder.record(comparison)
    return comparison


class _Recorder(ComparisonObserver):
    """Keeps the results in files, and tells an observer of everything."""

    def __init__(self, places: Sequence[Path], observer: ComparisonObserver) -> None:
        self._places = places
        self._observer = observer

    def progress(self, program: str, method: str) -> None:
        self._observer.progress(program, method)

    def record(self, comparison: Comparison) -> None:
        for place in self._places:
            write_json(place, comparison.to_json())
        self._observer.record(comparison)

    def note(self, text: str) -> None:
        self._observer.note(text)


def _uris(programs: Sequence[str | Path]) -> list[str]:
    """Return the URIs of programs; files become those of whoever reads them."""
    if not isinstance(programs, str | list | tuple):
        raise ProgramError(f"programs are URIs or files, not {programs!r}: give a list of them")
    given = [programs] if isinstance(programs, str) else programs
    return [locate(program)[1] for program in given]


def _done(places: Sequence[Path]) -> Comparison | None:
    """Return what an earlier run left; None where there is nothing to resume."""
    if not places:
        raise IrgymError("--resume needs the results so far: name their file by --json or --run-folder")
    return read_comparison(places[0])
