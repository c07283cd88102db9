"""`irgym sweep`."""

import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import cast

from tyro.conf import OmitArgPrefixes, Suppress

from irgym.base.errors import IrgymError
from irgym.base.files import write_file
from irgym.base.interrupts import INTERRUPTED
from irgym.base.values import plain
from irgym.cli.commands import parsed
from irgym.cli.configuration import given_in, value_of
from irgym.cli.grid import combinations, name_of, setting_of, taken_out, words_of
from irgym.cli.nested import check_inner
from irgym.cli.output import console, write_json_to
from irgym.cli.submit import script_of, submitted
from irgym.cli.train import Train
from irgym.core.catalogue import ENVIRONMENTS
from irgym.judging.units import gain_word
from irgym.measure.farm.jobs import JobOptions, named
from irgym.policies.run_folder import RunFolder
from irgym.reporting.sweeps import cells, headings, page, read_run, settings_of
from irgym.reporting.wide_table import WideTable


@dataclass(frozen=True)
class Sweep:
    """Train with all combinations of some settings, here or as SLURM jobs; show means and intervals.

    As in `irgym sweep --sweep lr=1e-4,3e-4 seed=0:5 train loops --run runs/lr`: ten runs in folders of
    runs/lr, one after the other. Runs that were begun before resume. The end is a table, and the page
    sweep.html with curves; intervals are over the seeds.
    """

    sweep: tuple[str, ...] = ()
    """Settings as name=value,value or name=LOW:HIGH (whole numbers below HIGH): hyper-parameters, or options
    of train such as seed or agent."""
    evaluate: bool = False
    """Also evaluate each policy on the test programs, as `irgym evaluate` does."""
    submit: bool = False
    """Submit a SLURM job for each run, with the job options, instead of running it here."""
    dry_run: bool = False
    """Print the commands of the runs, or with --submit their scripts, and do nothing."""
    table: bool = False
    """Run nothing: show what the runs came to so far."""
    job: OmitArgPrefixes[JobOptions] = field(default_factory=JobOptions)
    json: Path | None = None
    """Write the table as JSON to this file."""
    words: Suppress[tuple[str, ...]] = ()
    """The training and its options."""

    def run(self) -> None:
        """Train or submit each run, then show what they came to."""
        swept, words = taken_out(self.sweep, self.words)
        check_inner(words, "sweep", ("train",))
        command = cast(Train, parsed(words))
        runs = [(values, words_of(words, values, command.folder)) for values in combinations(swept)]
        for values, training in runs:
            parsed(training)  # before any runs, since each mistake would end one of them
            job = named(replace(self.job, name=""), training)
            if self.dry_run:
                print(script_of(job, training) if self.submit else shlex.join(["irgym", *training]))
            elif self.submit and not self.table:
                print(f"job {submitted(job, script_of(job, training))}: {name_of(values)}")
        if self.dry_run or (self.submit and not self.table):
            return
        todo = [] if self.table else runs
        failed = [name_of(values) for values, training in todo if not self._trained(training)]
        self._show(command, [values for values, _ in runs])
        if failed:
            raise IrgymError(f"{len(failed)} of {len(runs)} runs failed ({', '.join(failed)}): see above")

    def _trained(self, words: Sequence[str]) -> bool:
        """Train a run, or go on with it, and evaluate it if wanted; say whether it succeeded."""
        folder = RunFolder(Path(value_of(words, "run") or ""))
        begun = folder.checkpoint.exists() or folder.previous.exists()
        print(f"== {folder.path.name}{', resumed' if begun else ''}", flush=True)
        resume = ["--resume"] if begun and "resume" not in given_in(words) else []
        if not _succeeds([words[0], *resume, *words[1:]]):
            return False
        return not self.evaluate or _is_evaluated(folder) or _succeeds(["evaluate", str(folder.path)])

    def _show(self, command: Train, swept: Sequence[Mapping[str, str]]) -> None:
        """Print the table, and write table and curves."""
        runs = [read_run(command.folder / name_of(values), setting_of(values)) for values in swept]
        gain = gain_word(ENVIRONMENTS.load(command.environment).objective(command.measuring.objective))
        settings = settings_of(runs)
        console().print(WideTable("", headings(gain), [cells(setting) for setting in settings]))
        lines = [plain(asdict(setting)) for setting in settings]
        write_json_to(self.json, {"runs": len(runs), "settings": lines})
        written = page(command.folder.name, runs, gain)
        if written is not None:
            write_file(command.folder / "sweep.html", written.encode())
            print(f"written: {command.folder / 'sweep.html'}")


def _is_evaluated(folder: RunFolder) -> bool:
    """Say whether the newest policy of a run was evaluated."""
    there = folder.evaluation.exists()
    return there and folder.evaluation.stat().st_mtime >= folder.policy.stat().st_mtime


def _succeeds(words: Sequence[str]) -> bool:
    """Run a command of irgym in another process, and say whether it succeeded.

    Raises:
        KeyboardInterrupt: It was interrupted.
    """
    code = subprocess.run([sys.executable, "-m", "irgym", *words], check=False).returncode
    if code == INTERRUPTED:
        raise KeyboardInterrupt
    return code == 0
