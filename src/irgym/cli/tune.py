"""`irgym tune`."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tyro.conf import Positional

from irgym.api.checks import check_export_of, check_file
from irgym.api.objects import named_object
from irgym.api.tuning import tune, tune_parts
from irgym.base.errors import IrgymError
from irgym.cli.options import Measuring
from irgym.cli.output import console
from irgym.core.catalogue import locate
from irgym.core.queries import with_ranges
from irgym.core.task import form_of


@dataclass(frozen=True)
class Tune:
    """Find the best schedule for a program, check its results, and say how good it is."""

    uri: Positional[str]
    """The program: loops://mm/64x64x64, a file such as model.onnx or model.pt2, or package.module:function.

    All functions of a file of C are tuned. A function of Python is called for a torch module or a JAX
    function, and its inputs.
    """
    environment: str | None = None
    """What is to take a torch module: by default `graph`, or `linalg`."""
    search: str | None = None
    """Search strategy; by default `exhaustive` where costs are exact and there are few programs, else
    `guided` where there is a policy, else `evolutionary`."""
    policy: str | None = None
    """Policy that leads the search: the name of one that ships (`default`), or a run folder."""
    seconds: float | None = None
    """Time for the search; 10 where neither this nor the number of evaluations is given. That of a file is
    shared out over its functions, those with the fewest choices first: each gets an equal share of what is
    left. The time for checks is not in it."""
    evaluations: int | None = None
    """Number of distinct candidates to evaluate; that of a file is shared out in the same way."""
    seed: int = 0
    """Seed of all random choices."""
    resume: bool = False
    """Go on from what was found before on this machine; `irgym history` shows that. Time and evaluations
    start from zero."""
    add_seconds: float | None = None
    """The same as --resume --seconds."""
    quick: bool = False
    """Take the best schedule that was found before, and search only where there is none."""
    range: tuple[str, ...] = ()
    """Whole numbers that inputs of an ONNX file may hold, as in ids=0:30522, which leaves out the last."""
    measuring: Measuring = field(default_factory=Measuring)
    export: Path | None = None
    """Write the result to this file, usable without irgym; its suffix chooses the form. That of a file is
    written again after functions are tuned, so that a run that is cut short leaves what it had found."""
    report: Path | None = None
    """Write a page on the result to this file: what was gained by what, and the program before and after."""
    json: Path | None = None
    """Write the result as JSON to this file."""

    def run(self) -> None:
        """Tune, print, export."""
        what = self.measuring
        added = self.add_seconds is not None
        if added and self.seconds is not None:
            raise IrgymError("--seconds and --add-seconds both say how long to search: leave one out")
        options: dict[str, Any] = {
            "search": self.search,
            "policy": self.policy,
            "seconds": self.add_seconds if added else self.seconds,
            "evaluations": self.evaluations,
            "seed": self.seed,
            "resume": self.resume or added,
            "quick": self.quick,
            **what.arguments,
        }
        check_file(self.report)
        named = with_ranges(self.uri, self.range)
        made = named_object(named)
        program, inputs = made or (named, ())
        home, uri = locate(program, inputs, self.environment)
        if home.parts(uri, what.target):
            if self.report is not None:
                raise IrgymError(f"a report is about one function: name one, as in {self.uri}#NAME")
            if self.export is not None:
                form_of(self.export, home.part_forms)
                check_file(self.export)
            from irgym.cli.tuned import PartsFiles, show_parts

            files = PartsFiles(self.json, self.export)
            with files, console().status(uri) as status:
                parts = tune_parts(uri, **options, note=status.update, done=files.update)
            show_parts(parts, files)
            return
        check_export_of(uri, what.arguments["backend"], what.target, what.objective, self.export)
        with console().status(uri) as status:
            result = tune(uri, **options, note=status.update)
        # Late: what prints results is imported when the processes that find them have started.
        from irgym.cli.tuned import show
        from irgym.judging.tuned import Original

        if made is not None:
            result = replace(result, original=Original(program, inputs, home))
        show(result, self.json, self.export, self.report)
