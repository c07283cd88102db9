"""Find habits of wording that the project avoids, in code and in prose.

    python tests/toys/words.py src/irgym/search docs

Prints a line for each: file, line, the habit and its remedy.
"""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

PROSE = {
    r"\bas written\b": "original, unoptimised",
    r"\banew\b": "again",
    r"\b(?:its|their) own\b": "name the owner, or leave `own` out",
    r"\bthat which\b|\bthose which\b": "name the thing",
    r"\b(?:is|are) said of\b": "describes",
    r"\bwhat code is made for\b": "the target",
    r"\bversus_call\b": "a method that no longer exists",
    r"\bfor one in\b": "call the variable after what it holds",
    r"\bof themselves\b|\bby itself alone\b": "on their own; alone",
    r"\bdoes not (?:run|exist|hold) any more\b": "no longer does",
}
"""Patterns of prose, in any case, and what to write instead."""

OPENING = re.compile(r"\s*What\b")
VARIABLE = "one"

_WORDS = [(re.compile(pattern, re.IGNORECASE), remedy) for pattern, remedy in PROSE.items()]


def in_python(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of a Python file with habits to avoid, and what each is."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id == VARIABLE:
            yield node.lineno, "a variable called `one`: call it after what it holds"
        elif isinstance(node, ast.arg) and node.arg == VARIABLE:
            yield node.lineno, "a parameter called `one`: call it after what it holds"
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            content = node.value.value
            if isinstance(content, str) and OPENING.match(content):
                yield node.lineno, "a docstring that begins with `What`: begin with a noun or a verb"
    if not any(in_prose(text)):
        return  # to tell comments and strings from code takes long
    kinds = (tokenize.COMMENT, tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING))
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in kinds:
            for offset, words in in_prose(token.string):
                yield token.start[0] + offset - 1, words


def in_prose(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of a text with habits to avoid, and what each is."""
    line = re.sub(r"\s", " ", text)
    for pattern, remedy in _WORDS:
        for found in pattern.finditer(line):
            yield text.count("\n", 0, found.start()) + 1, f"`{found[0]}`: {remedy}"


def in_file(path: Path) -> list[str]:
    """Return the habits in a file, a line each."""
    text = path.read_text()
    found = in_python(text) if path.suffix == ".py" else in_prose(text)
    return [f"{path}:{line}: {words}" for line, words in sorted(set(found))]


def files_in(places: list[Path]) -> list[Path]:
    """Return the files of Python and Markdown in some folders, but the tests of words."""
    files = [file for place in places for file in ([place] if place.is_file() else place.rglob("*"))]
    exempt = ("words.py", "test_words.py")  # these list the habits
    return sorted(file for file in files if file.suffix in (".py", ".md") and file.name not in exempt)


if __name__ == "__main__":
    lines = [line for file in files_in([Path(place) for place in sys.argv[1:]]) for line in in_file(file)]
    print("\n".join(lines) or "no such habits")
    sys.exit(bool(lines))
