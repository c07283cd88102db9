"""Modules of the data set `packages` of the environment `llvm`, with their numbers of instructions.

    python benchmarks/llvm_packages.py
    python benchmarks/llvm_packages.py --package lz4 --package zopfli
    python benchmarks/llvm_packages.py --write

Source distributions are fetched and compiled. `--write` rewrites the list that irgym ships. A module equal to
an earlier one is left out; those of the test split come first.
"""

import json
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import tyro

from irgym.base.errors import ProgramError
from irgym.core.program_files import is_glob
from irgym.envs.llvm.programs.datasets import LEAST, MOST
from irgym.envs.llvm.programs.modules import MODULES, Size, modules
from irgym.envs.llvm.programs.sources import Sources
from irgym.llvmir.programs.files import SourceFile
from irgym.llvmir.programs.packages.fetching import unpacked
from irgym.llvmir.programs.packages.pinned import Package, packages_of
from irgym.measure.store import content_digest


@dataclass(frozen=True)
class Options:
    """Options of the count."""

    package: list[str] = field(default_factory=list)
    """Packages to count; all by default."""
    workers: int = 2
    """Number of packages that are compiled at once."""
    write: bool = False
    """Whether to write the list that irgym ships."""


@dataclass
class Found:
    """Modules of a package.

    Attributes:
        sizes: By file, the digest of its module, and the numbers of its instructions.
        left_out: For each file that is no module, why.
    """

    sizes: dict[str, tuple[str, Size]] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)


def found_in(package: Package) -> Found:
    """Return the modules of a package."""
    folder = unpacked(package)
    found = Found()
    with Sources() as sources:
        for file in sorted({file for pattern in package.sources for file in folder.glob(pattern)}):
            path = f"{package.name}/{file.relative_to(folder)}"
            try:
                module = sources.of_file(SourceFile(file, package.options(folder), pinned=True))
                size = Size(*sources.sizes(module))
            except ProgramError as error:
                found.left_out.append(f"{path}: {error}")
                continue
            found.sizes[path] = content_digest(module.read_bytes()), size
    wrong = [
        pattern for pattern in package.sources if not is_glob(pattern) and not (folder / pattern).exists()
    ]
    assert not wrong, f"{package.name} has no {', '.join(wrong)}"
    return found


def main(options: Options) -> None:
    """Print the number of modules of each package."""
    wanted = options.package
    chosen = [package for name, package in packages_of("llvm").items() if not wanted or name in wanted]
    chosen.sort(key=lambda package: package.split)  # test before train
    print(f"{'package':24s}{'split':7s}{'compiled':>9s}{'left out':>9s}{'in range':>9s}{'-Oz':>9s}")
    whole: dict[str, Size] = {}
    seen: set[str] = set()
    totals: Counter[str] = Counter()
    with ThreadPoolExecutor(options.workers) as pool:
        for package, found in zip(chosen, pool.map(found_in, chosen), strict=True):
            fresh = {path: size for path, (digest, size) in found.sizes.items() if digest not in seen}
            seen |= {digest for digest, _ in found.sizes.values()}
            inside = [size for size in fresh.values() if LEAST <= size.original <= MOST]
            print(
                f"{package.name:24s}{package.split:7s}{len(found.sizes):9d}{len(found.left_out):9d}"
                f"{len(inside):9d}{sum(size.reference for size in inside):9d}",
                flush=True,
            )
            for line in found.left_out:
                print(f"    {line}")
            totals[package.split] += len(inside)
            whole |= fresh
    print(", ".join(f"{split} {count}" for split, count in totals.items()))
    _compare(whole, options)


def _compare(whole: dict[str, Size], options: Options) -> None:
    """Write the list of modules, or say how it differs from the one that ships."""
    known = {path: size for path, size in modules().items() if not options.package or _is_of(path, options)}
    if options.write and not options.package:
        lines = ",\n".join(
            f" {json.dumps(path)}: [{size.original}, {size.reference}]"
            for path, size in sorted(whole.items())
        )
        MODULES.write_text(f"{{\n{lines}\n}}\n")
    elif whole != known:
        changed = sum(1 for path in {*whole, *known} if whole.get(path) != known.get(path))
        print(f"the list that ships has others for {changed} files: run again with --write")


def _is_of(path: str, options: Options) -> bool:
    return path.partition("/")[0] in options.package


if __name__ == "__main__":
    main(tyro.cli(Options))
