"""`irgym report`."""

from dataclasses import dataclass
from pathlib import Path

from tyro.conf import Positional

from irgym.api.checks import check_file
from irgym.cli.output import write_json_to
from irgym.policies.run_folder import RunFolder
from irgym.reporting.report import write_report


@dataclass(frozen=True)
class Report:
    """Write the HTML page of a run: one file that works offline."""

    folder: Positional[Path]
    """Run folder."""
    out: Path | None = None
    """File to write; by default report.html in the folder."""
    json: Path | None = None
    """Write the path of the page as JSON to this file."""

    def run(self) -> None:
        """Write the page."""
        folder = RunFolder(self.folder)
        out = folder.report if self.out is None else self.out
        check_file(self.out)
        write_report(self.folder, out)
        if folder.cut_off:
            print(folder.cut_off)
        print(f"written: {out}")
        write_json_to(self.json, {"report": str(out)})
