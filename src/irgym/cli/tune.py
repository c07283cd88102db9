"""`irgym tune`."""

import time
from dataclasses import dataclass, field, replace
from pathlib import Path

from tyro.conf import OmitArgPrefixes, Positional

from irgym.api.checks import check_file
from irgym.api.exports import check_export_of
from irgym.api.objects import named_object
from irgym.api.parts import tune_parts
from irgym.api.requests import Measuring, Searching
from irgym.api.tuning import tune
from irgym.base.errors import IrgymError
from irgym.cli.output import console
from irgym.core.catalogue import locate
from irgym.core.environment import Environment
from irgym.core.queries import with_inputs, with_ranges, with_sizes
from irgym.core.task import form_of
from irgym.search.tree import TREES, SearchTree


@dataclass(frozen=True)
class Tune:
    """Find the best schedule for a program, check its results, and say how good it is."""

    uri: Positional[str]
    """The program: loops://mm/64x64x64, a file such as model.onnx or model.pt2, or package.module:function.

    All functions of a file of C are tuned. A function of Python is called for a torch module or a JAX
    function, and its inputs.
    """
    environment: str | None = None
    """Environment that takes a torch module: `graph` by default, or `linalg`."""
    policy: str | None = None
    """Policy that leads the search: the name of one that ships (`default`), or a run folder."""
    seconds: float | None = None
    """Time of the whole, checks included; 20 if neither this nor the number of evaluations is given. The
    functions of a file share it: each gets an equal share of the rest, the smallest first."""
    seed: int = 0
    """Seed of all random choices."""
    searching: OmitArgPrefixes[Searching] = field(default_factory=Searching)
    add_seconds: float | None = None
    """The same as --resume --seconds."""
    sizes: tuple[str, ...] = ()
    """Sizes of open dimensions, as in batch=1,height=320: those at which an ONNX file is measured. Given
    several times, with how often the model is called at each, as in batch=8,height=320:0.3, the mean time of
    a call is minimised."""
    range: tuple[str, ...] = ()
    """Range of whole numbers in an input of an ONNX file, as in ids=0:30522, which leaves out the last."""
    inputs: Path | None = None
    """Inputs of an ONNX file: an .npz file with an array for each, or a folder of several such samples. They
    tell sizes and ranges; the first is measured, and results are checked on all of them."""
    measuring: OmitArgPrefixes[Measuring] = field(default_factory=Measuring)
    export: Path | None = None
    """Write the result to this file, usable without irgym; its suffix chooses the form. For the functions of
    a file it is written again from time to time, so that an interrupted run leaves its results."""
    trace: Path | None = None
    """Write the tree that the search walked, with costs, to this file: .svg or .dot, which show the cheapest
    schedules of many, or .json, which has all."""
    report: Path | None = None
    """Write a page on the result to this file: the gains, and the program before and after."""
    json: Path | None = None
    """Write the result as JSON to this file."""

    def run(self) -> None:
        """Tune, print, export."""
        if self.add_seconds is not None and self.seconds is not None:
            raise IrgymError("--seconds and --add-seconds both say how long to search: leave one out")
        check_file(self.report)
        if self.trace is not None:
            check_file(self.trace)
            form_of(self.trace, TREES)
        searching = replace(self._searching, started=time.monotonic())
        named = with_inputs(with_ranges(with_sizes(self.uri, self.sizes), self.range), self.inputs)
        made = named_object(named if self.inputs is None else self.uri)
        if made is not None and self.inputs is not None:
            raise IrgymError(f"--inputs is for a model in a file, and {self.uri} has inputs: leave it out")
        program, inputs = made or (named, ())
        home, uri = locate(program, inputs, self.environment)
        if home.parts(uri, self.measuring.target):
            self._tune_parts(home, uri)
            return
        check_export_of(home, uri, self.measuring, self.export)
        tree = None if self.trace is None else SearchTree()
        with console().status(uri) as status:
            result = tune(
                uri,
                policy=self.policy,
                seconds=self._seconds,
                seed=self.seed,
                searching=searching if tree is None else replace(searching, evaluated=tree.add),
                measuring=self.measuring,
                note=status.update,
            )
        # Late: these print results, and are imported when the processes that find them have started.
        from irgym.cli.results import show, write_trace
        from irgym.judging.original import Original

        if made is not None:
            result = replace(result, original=Original(program, inputs, home))
        show(result, self.json, self.export, self.report)
        if tree is not None and self.trace is not None:
            write_trace(tree, result, self.trace)

    def _tune_parts(self, home: Environment, uri: str) -> None:
        """Tune the functions of a file."""
        if self.report is not None:
            raise IrgymError(f"a report is about one function: name one, as in {self.uri}#NAME")
        if self.trace is not None:
            raise IrgymError(f"a trace is of one search: name a function, as in {self.uri}#NAME")
        if self.export is not None:
            form_of(self.export, home.part_forms)
            check_file(self.export)
        from irgym.cli.results import PartsFiles, show_parts

        files = PartsFiles(self.json, self.export)
        with files, console().status(uri) as status:
            parts = tune_parts(
                uri,
                policy=self.policy,
                seconds=self._seconds,
                seed=self.seed,
                searching=self._searching,
                measuring=self.measuring,
                note=status.update,
                done=files.update,
            )
        show_parts(parts, files)

    @property
    def _seconds(self) -> float | None:
        """Time for the search."""
        return self.seconds if self.add_seconds is None else self.add_seconds

    @property
    def _searching(self) -> Searching:
        """Options of the search."""
        return self.searching if self.add_seconds is None else replace(self.searching, resume=True)
