"""Draw the README's picture from the run folder of `make demo`: each method beside numpy on each program.

    make demo
    python docs/picture.py runs/demo

Writes docs/images/demo.svg.
"""

import re
import sys
from importlib.resources import files
from pathlib import Path

from irgym.comparing.results import read_comparison
from irgym.policies.run_folder import RunFolder
from irgym.reporting.plots import per_program

OUT = Path(__file__).parent / "images" / "demo.svg"


def main() -> None:
    """Draw the comparison of the run folder that the command line names."""
    if len(sys.argv) != 2:
        sys.exit("usage: python docs/picture.py RUN, for example runs/demo after make demo")
    comparison = read_comparison(RunFolder(Path(sys.argv[1])).comparison)
    if comparison is None or comparison.baseline is None:
        sys.exit(f"{sys.argv[1]} has no comparison with a baseline: run make demo first")
    label = f"speed, as a multiple of {comparison.baseline}'s"
    svg = per_program(comparison, "baseline_ratio", label, "demo")
    if svg is None:
        sys.exit(f"{sys.argv[1]} compares no program with {comparison.baseline}: run make again-demo")
    OUT.write_text(_with_style(svg))
    print(f"wrote {OUT.relative_to(OUT.parents[2])}")


def _with_style(svg: str) -> str:
    """Return an SVG element as a whole file, with the colours of reports for light and dark pages."""
    sheet = files("irgym.reporting").joinpath("report.css").read_text()
    light, dark = re.findall(r":root \{(.*?)\}", sheet, re.DOTALL)[:2]
    paint = "svg { color: var(--ink); background: var(--paper); font-family: sans-serif; }"
    rules = f":root {{{light}}} @media (prefers-color-scheme: dark) {{ :root {{{dark}}} }} {paint}"
    return re.sub(r"(<svg [^>]*>)", rf"\g<1><style>{rules}</style>", svg, count=1) + "\n"


if __name__ == "__main__":
    main()
