"""Functions with candidates of the data set `packages`.

    python benchmarks/cse_packages.py
    python benchmarks/cse_packages.py --write

Source distributions are fetched, compiled and analysed. `--write` rewrites the list that irgym ships.
Functions with the same text as one of an earlier file are left out.
"""

import json
from collections import Counter
from dataclasses import dataclass

import tyro

from irgym.base.errors import ProgramError
from irgym.envs.cse.ir.analysis import analysed
from irgym.envs.cse.programs.functions import FUNCTIONS, functions
from irgym.envs.cse.programs.sources import Sources
from irgym.llvmir.ir.modules import ModuleText
from irgym.llvmir.ir.syntax import bare
from irgym.llvmir.programs.files import SourceFile
from irgym.llvmir.programs.packages.fetching import unpacked
from irgym.llvmir.programs.packages.pinned import Package, packages_of

GROUPS = ((3, 4), (5, 8), (9, 16), (17, 32), (33, 64))
"""Ranges of the number of candidates."""


@dataclass(frozen=True)
class Options:
    """Options of the analysis."""

    target: str = "x86-64"
    """Target of the code."""
    least: int = 3
    """Least number of candidates of a function."""
    write: bool = False
    """Whether to write the list that irgym ships."""


def found_in(
    package: Package, sources: Sources, options: Options, seen: set[tuple[str, ...]]
) -> dict[str, Counter[str]]:
    """Return the functions of a package by file, with their numbers of candidates."""
    folder = unpacked(package)
    found: dict[str, Counter[str]] = {}
    for file in sorted({file for pattern in package.sources for file in folder.glob(pattern)}):
        path = f"{package.name}/{file.relative_to(folder)}"
        try:
            module = sources.module(SourceFile(file, package.options(folder)), options.target)
        except ProgramError as error:
            print(f"{path}: left out: {error}")
            continue
        text = ModuleText.read(module.read_text())
        counts: Counter[str] = Counter()
        for name, function in text.functions.items():
            try:
                count = len(analysed(text, name).candidates)
            except ProgramError as error:
                print(f"{path}: {name} left out: {error}")
                continue
            if count >= options.least and function.lines not in seen:
                seen.add(function.lines)
                counts[bare(name)] = count
        if counts:
            found[path] = counts
    return found


def main(options: Options) -> None:
    """Print the number of functions of each package, by number of candidates."""
    print(
        f"{'package':16s}{'split':7s}" + "".join(f"{f'{low}-{high}':>7s}" for low, high in GROUPS) + "    all"
    )
    whole: dict[str, Counter[str]] = {}
    seen: set[tuple[str, ...]] = set()
    totals: Counter[str] = Counter()
    with Sources() as sources:
        for package in packages_of("cse").values():
            found = found_in(package, sources, options, seen)
            counts = [count for names in found.values() for count in names.values()]
            groups = [sum(1 for count in counts if low <= count <= high) for low, high in GROUPS]
            print(
                f"{package.name:16s}{package.split:7s}"
                + "".join(f"{count:7d}" for count in groups)
                + f"{len(counts):7d}"
            )
            totals[package.split] += len(counts)
            whole |= found
    print(", ".join(f"{split} {count}" for split, count in totals.items()))
    names = {path: tuple(counts) for path, counts in whole.items()}
    if options.write:
        FUNCTIONS.write_text(json.dumps(names, indent=1) + "\n")
    elif names != functions():
        changed = {path for path in {*names, *functions()} if names.get(path) != functions().get(path)}
        print(f"the list that ships has others in {len(changed)} files: run again with --write")


if __name__ == "__main__":
    main(tyro.cli(Options))
