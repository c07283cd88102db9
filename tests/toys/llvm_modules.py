"""Modules of LLVM's IR in another process: LLVM ends the process where it finds itself wrong."""

import multiprocessing
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from ctypes import POINTER, c_char_p, c_int
from pathlib import Path
from typing import NamedTuple

from irgym.envs.llvm.compiling.library import Context, Module, library
from irgym.envs.llvm.observing.counts import SIZE
from irgym.envs.llvm.observing.graphs import ProgramGraph


class Seen(NamedTuple):
    """Observations of a module: counts and graph as bytes, text and bitcode."""

    counts: bytes
    graph: tuple[bytes, bytes]
    text: str
    bitcode: bytes


def seen(module: Module) -> Seen:
    """Return what is observed of a module."""
    return Seen(module.counts(SIZE), module.graph(), module.text(), module.bitcode())


def observed(content: bytes, passes: str = "", backend: str = "llvm-23") -> dict[str, Seen]:
    """Return what is observed of a module after passes: twice, of a clone, and after a round trip."""
    llvm = library(backend)
    module = Context(llvm, named=True).read(content, "module")
    if passes:
        module.run(passes)
    first = seen(module)
    again = Context(llvm, named=True).read(first.bitcode, "module")
    return {"first": first, "second": seen(module), "clone": seen(module.clone()), "reread": seen(again)}


def refused(content: bytes, size: int) -> str:
    """Return the message of counts of a wrong size."""
    module = Context(library("llvm-23")).read(content, "module")
    try:
        module.counts(size)
    except ValueError as error:
        return str(error)
    return ""


def graph_of(content: bytes) -> ProgramGraph:
    """Return the program graph of a module."""
    return ProgramGraph.of(Context(library("llvm-23"), named=True).read(content, "module"))


@contextmanager
def llvm_process(cache: Path) -> Iterator[ProcessPoolExecutor]:
    """Provide a process for these functions, which builds the C that it needs in a folder."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), _within, (str(cache),)) as process:
        yield process


def _within(cache: str) -> None:
    """Let a process keep what it builds in a folder."""
    os.environ["IRGYM_CACHE_DIR"] = cache


def print_embeddings(vocabulary: str, file: str) -> None:
    """Let LLVM print embeddings of a module."""
    llvm = library("llvm-23")
    parse = llvm.function("LLVMParseCommandLineOptions", None, c_int, POINTER(c_char_p), c_char_p)
    parse(2, (c_char_p * 2)(b"irgym", f"-ir2vec-vocab-path={vocabulary}".encode()), b"")
    module = Context(llvm, named=True).read(Path(file).read_bytes(), "module")
    module.run("print<ir2vec>")


if __name__ == "__main__":
    print_embeddings(*sys.argv[1:])
