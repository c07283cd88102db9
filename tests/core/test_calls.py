"""Functions named in text, as `irgym.module:name`, exist: type checkers do not see them."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import irgym

ROOT = Path(irgym.__file__).parent
NAMED = re.compile(r"(irgym(?:\.\w+)+):(\w+|\{\})")


def module_name(path: Path) -> str:
    return ".".join(["irgym", *path.relative_to(ROOT).with_suffix("").parts]).removesuffix(".__init__")


@cache
def modules() -> dict[str, ast.Module]:
    """Return irgym's modules by name."""
    return {module_name(path): ast.parse(path.read_text()) for path in ROOT.rglob("*.py")}


def definitions(tree: ast.Module) -> Iterator[tuple[str, ast.AST]]:
    """Yield the names that a module defines at its top level, and what each one is."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name, node
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value:
            yield node.target.id, node.value
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                pairs = [(target, node.value)]
                if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                    pairs = list(zip(target.elts, node.value.elts, strict=True))
                yield from ((name.id, value) for name, value in pairs if isinstance(name, ast.Name))


def texts(module: str, tree: ast.Module) -> Iterator[str]:
    """Yield the strings of a module; in f-strings, `{}` stands for all but constants of the module."""
    known = {name: node.value for name, node in definitions(tree) if isinstance(node, ast.Constant)}
    known["__name__"] = module
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.JoinedStr):
            parts = [
                part.value
                if isinstance(part, ast.Constant)
                else known.get(getattr(getattr(part, "value", None), "id", ""), "{}")
                for part in node.values
            ]
            yield "".join(map(str, parts))


def test_functions_named_in_text_exist():
    found = {
        (module, *named.groups())
        for module, tree in modules().items()
        for text in texts(module, tree)
        if (named := NAMED.fullmatch(text))
    }
    assert len(found) > 60
    missing = [
        f"{module} names {place}:{name}"
        for module, place, name in sorted(found)
        if place not in modules() or (name != "{}" and name not in dict(definitions(modules()[place])))
    ]
    assert not missing, missing
