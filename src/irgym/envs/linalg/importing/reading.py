"""Parsing of files, including several modules in a file, older spellings, and torch-mlir's dialects.

Within `mlir`.
"""

import re
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from irgym.base.errors import ProgramError
from irgym.envs.linalg.compiling.bindings import ir
from irgym.envs.linalg.compiling.contexts import SAID, parse, run_passes
from irgym.envs.linalg.importing.cleaning import operations

torch_dialect: Any = import_module("torch_mlir.dialects.torch")

FROM_TORCH = (
    "func.func(torch-match-quantized-custom-ops),torchdynamo-export-to-torch-backend-pipeline",
    "torch-backend-to-linalg-on-tensors-backend-pipeline",
)
"""Passes that lower torch-mlir's dialect to linalg on tensors."""

TM_TO_LOOPS = "func.func(tm-tensor-bufferize,tm-tensor-to-loops)"
"""Passes that lower torch-mlir's dialect of scans and sorts to loops over buffers; they also register it."""

_SPLIT = re.compile(r"^[ \t]*//[ \t]*-----.*$", re.MULTILINE)
"""Separator of the modules in a file, as in MLIR's tests."""

_FUNCTION = re.compile(r'\bfunc\.func\s+(?:(?:public|private|nested)\s+)?@(?:"([^"]+)"|([\w.$-]+))')

_SPELLINGS = (
    (re.compile(r"\btensor\.(pack|unpack)\b"), r"linalg.\1"),
    (re.compile(r"\blinalg\.init_tensor\s*\[[^\]]*\]"), "tensor.empty()"),
    (re.compile(r"\barith\.(max|min)f\b"), r"arith.\1imumf"),
)
"""Operations that MLIR has renamed, in their old syntax, and their new spelling."""

_CHECKS = re.compile(r"^[ \t]*check\.expect_\w+[^\n]*\n", re.MULTILINE)
"""Operations of tpp-mlir's runner that check results."""

_EXPANDED = re.compile(
    r"(tensor\.expand_shape\s+%[\w#.]+\s*\[[\[\]\d\s,]*\])"
    r"(\s*(?:\{[^}]*\}\s*)?:\s*tensor<[^>]*>\s*into\s*tensor<)((?:\d+x)*)(?=[a-z])"
)
"""A reshape in the old syntax, without the new shape."""

_SCHEDULE = re.compile(
    r"^[ \t]*(?:transform\.(?:named_)?sequence\b"
    r"|module\b[^{\n]*attributes\s*\{\s*transform\.with_named_sequence\s*\})[^{\n]*(?:\n[^{\n]*)?\{",
    re.MULTILINE,
)
"""Start of a transform script."""


def read(text: str, name: str, wanted: str) -> Any:
    """Parse a file.

    Args:
        text: MLIR as text, one module or several with lines of `// -----` between them.
        name: Name of the file in errors.
        wanted: Name of the function that becomes the program; empty for the only one.

    Raises:
        ProgramError: This version of MLIR cannot read it; the message names the line.
    """
    begun, part = _part(text, wanted)
    if re.search(r"\b(torch|torch_c)\.", part):
        torch_dialect.register_dialect(ir.Context.current)
    if "tm_tensor." in part:
        run_passes(parse("module {}"), TM_TO_LOOPS)
    try:
        module = parse(part)
    except ir.MLIRError as error:
        module = _in_older_spelling(part)
        if module is None:
            raise _refusal(error, part, name, begun) from error
    module = _program(module)
    if any(operation.name.startswith(("torch.", "torch_c.")) for operation in operations(module)):
        for passes in FROM_TORCH:
            run_passes(module, passes)
    return module


def _program(module: Any) -> Any:
    """Return a module without transform scripts; for a module around a single module, the inner one."""
    for operation in [view.operation for view in module.body.operations]:
        if operation.name.startswith("transform.") or "transform.with_named_sequence" in operation.attributes:
            operation.erase()
    left = [view.operation for view in module.body.operations]
    if len(left) == 1 and left[0].name == "builtin.module":
        return _program(parse(str(left[0])))
    return module


def _part(text: str, wanted: str) -> tuple[int, str]:
    """Return the number of lines before the module with the wanted function, and the module's text."""
    ends = [found.span() for found in _SPLIT.finditer(text)]
    begins = [0, *(end for _, end in ends)]
    parts = [
        (text.count("\n", 0, begin), text[begin:end])
        for begin, end in zip(begins, [*(begin for begin, _ in ends), len(text)], strict=True)
    ]
    having = [part for part in parts if wanted in _names(part[1])] if wanted else []
    others = [part for part in parts if _names(part[1])]
    if having:
        return having[0]
    return others[0] if len(others) == 1 else (0, _SPLIT.sub("", text))


def _names(text: str) -> list[str]:
    """Return the names of the functions of a text."""
    return [found[1] or found[2] for found in _FUNCTION.finditer(text)]


def _in_older_spelling(text: str) -> Any | None:
    """Parse the syntax of older versions of MLIR, without transform scripts; None where that fails."""
    text = _CHECKS.sub("", _without_schedules(text))
    for spelling, now in _SPELLINGS:
        text = spelling.sub(now, text)
    text = _EXPANDED.sub(_with_shape, text)
    try:
        return parse(text)
    except ir.MLIRError:
        return None


def _with_shape(found: re.Match[str]) -> str:
    sizes = ", ".join(found[3].rstrip("x").split("x"))
    return f"{found[1]} output_shape [{sizes}]{found[2]}{found[3]}"


def _without_schedules(text: str) -> str:
    """Return a text without its transform scripts, whose operations change from version to version."""
    kept: list[str] = []
    place = 0
    for found in _SCHEDULE.finditer(text):
        if found.start() >= place:
            kept.append(text[place : found.start()])
            place = _end_of_braces(text, found.end())
    return "".join([*kept, text[place:]])


def _end_of_braces(text: str, place: int) -> int:
    """Return the end of the block in braces that was opened just before a place."""
    depth = 1
    for found in _tokens(text, place):
        depth += {"{": 1, "}": -1}.get(found[0], 0)
        if not depth:
            return found.end()
    return len(text)


def _tokens(text: str, place: int) -> Iterator[re.Match[str]]:
    """Yield braces, and strings and comments, whose braces do not count."""
    return re.compile(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|[{}]').finditer(text, place)


def _refusal(error: Any, text: str, name: str, begun: int) -> ProgramError:
    """Return the error for a text that MLIR does not read."""
    first = error.error_diagnostics[0] if error.error_diagnostics else error
    said = " ".join(str(first.message).split())
    place = re.search(r":(\d+):\d+", str(getattr(first, "location", "")))
    line = f":{begun + int(place[1])}" if place else ""
    foreign = re.match(r"Dialect `(\w+)' not found", said)
    if not foreign and place and "unregistered dialect" in said:
        foreign = re.search(r'"(\w+)\.', text.splitlines()[int(place[1]) - 1])
    if foreign:
        return ProgramError(
            f"{name}{line} uses the dialect `{foreign[1]}` of another project: remove its operations, or "
            "write the program without them"
        )
    return ProgramError(f"{name}{line} is no valid MLIR: {said[:SAID]}")
