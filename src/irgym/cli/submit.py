"""`irgym submit`."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tyro.conf import OmitArgPrefixes, Suppress

from irgym.base.errors import StorageError, explained
from irgym.base.files import write_file
from irgym.cli.commands import SUMMARIES, parsed
from irgym.cli.nested import begun_by, check_inner
from irgym.cli.output import write_json_to
from irgym.measure.farm.jobs import JobOptions, batch_script, named, submit

SUBMITTED = tuple(name for name in SUMMARIES if name not in ("submit", "history", "envs", "farm", "worker"))
"""Commands that make sense as a job."""


@dataclass(frozen=True)
class Submit:
    """Submit any command as a SLURM job, which resumes when it is started again.

    As in `irgym submit --time 04:00:00 train loops --run runs/a`. After its time or its node ended, `train`
    resumes from its last checkpoint, `compare` from its rows, `tune` from what it found.
    """

    job: OmitArgPrefixes[JobOptions] = field(default_factory=JobOptions)
    dry_run: bool = False
    """Print the script, and submit nothing."""
    json: Path | None = None
    """Write number, script and output of the job as JSON to this file."""
    words: Suppress[tuple[str, ...]] = ()
    """The command and its options."""

    def run(self) -> None:
        """Check the command, write the script, submit it."""
        check_inner(self.words, "submit", SUBMITTED)
        job = named(self.job, self.words)
        text = script_of(job, self.words)
        if self.dry_run:
            print(text, end="")
            return
        number = submitted(job, text)
        output = str(job.output).replace("%j", number)
        print(f"job {number}: {job.script}")
        print(f"its output: {output}")
        write_json_to(self.json, {"job": number, "script": str(job.script), "output": output})


def script_of(job: JobOptions, words: Sequence[str]) -> str:
    """Return the batch script of a command of irgym, which is checked as if it were run here.

    Raises:
        IrgymError: The command is malformed, or a path suits no script.
    """
    begun = begun_by(parsed(words), job.marker)
    return batch_script(job, [sys.executable, "-m", "irgym", *words], Path.cwd(), begun)


def submitted(job: JobOptions, text: str) -> str:
    """Write the script of a job and submit it; return the number of the job.

    Raises:
        StorageError: The script cannot be written.
        BackendError: There is no SLURM here.
        FarmError: SLURM refused it.
    """
    with explained(f"cannot write to {job.folder}", "choose another --folder", StorageError):
        job.script.parent.mkdir(parents=True, exist_ok=True)
    write_file(job.script, text.encode())
    return submit(job.script)
