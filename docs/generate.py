"""Write the tables of the documentation that follow from the code, between markers in its pages.

    python docs/generate.py            # rewrite the pages that are out of date
    python docs/generate.py --check    # only list them; exit code 1 if there are any

A table stands between `<!-- generated: NAME ARGUMENT... -->` and `<!-- end -->`. `tests/test_docs.py` checks
that all of them are up to date.
"""

import ast
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol, get_args

from tyro.conf import Positional, Suppress

from irgym.agents import AGENTS
from irgym.api.translations import TRANSLATIONS
from irgym.base.options import options_text
from irgym.base.values import Range
from irgym.cli.commands import SUMMARIES, command_class
from irgym.conformance.rule import EnvironmentRule, PairRule, Rule
from irgym.conformance.rules import RULES
from irgym.conformance.rules.agents import AGENT_RULES
from irgym.core import capabilities
from irgym.core.catalogue import ENVIRONMENTS
from irgym.core.environment import Environment
from irgym.core.kinds import ActionKind
from irgym.core.reward_names import reward_names
from irgym.core.uri import Family, Option
from irgym.search import SEARCHES

ROOT = Path(__file__).parent.parent
PAGES = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md")))
HIDDEN = get_args(Suppress[int])[1]
"""Marks fields of requests that are no options."""

BLOCK = re.compile(r"(<!-- generated: ([^>]+?) -->\n)(.*?)(<!-- end -->)", re.DOTALL)


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "".join("| " + " | ".join(_cell(cell) for cell in line) + " |\n" for line in lines)


def _cell(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip().replace("|", r"\|")


def _code(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def environments() -> str:
    """Return the table of environments: the problem and the cost."""

    def rows() -> Iterator[tuple[str, ...]]:
        for name in ENVIRONMENTS.names():
            problem, _, cost = ENVIRONMENTS.load(name).summary.partition("; cost: ")
            yield f"`{name}`", problem, cost

    return table(("environment", "problem", "cost"), rows())


def environment(name: str) -> str:
    """Return what an environment offers under names: the values of the options of commands."""
    home = ENVIRONMENTS.load(name)
    rows = [(f"`{option}`", text) for option, text in _choices(home) if text]
    return table(("option", "values in " + f"`{name}`, the default first"), rows)


def _choices(home: Environment) -> Iterator[tuple[str, str]]:
    default = home.default_dataset
    names = [default, *(name.partition(" ")[0] for name in home.dataset_names() if name != default)]
    yield "--dataset", _code(names)
    yield "--objective", _described(home.objectives)
    yield "--backend", _code(status.name for status in home.backends())
    yield "--reward", _code(reward_names(home))
    yield "--recipe", _code(home.recipes)
    yield "--policy", _code(sorted(home.policies(), key=lambda policy: not policy.startswith("default")))
    yield "--methods: baselines", _described(home.baselines)
    yield "--methods: pipelines", _described(home.pipelines)
    yield "--methods: default", _code(home.default_methods)


def _described(named: Iterable[Any]) -> str:
    """Return names with their descriptions."""
    texts = [
        (value.name, getattr(value, "description", "") or getattr(value, "summary", "")) for value in named
    ]
    return "; ".join(f"`{name}`: {text}" for name, text in texts)


def searches() -> str:
    """Return the table of searches: the idea, and the parameters with their defaults."""

    def rows() -> Iterator[tuple[str, ...]]:
        for name in SEARCHES.names():
            factory: Any = SEARCHES.load(name)
            strategy = factory if inspect.isclass(factory) else factory()
            kind = strategy if inspect.isclass(strategy) else type(strategy)
            yield f"`{name}`", _first(kind), ", ".join(_parameters(strategy))

    return table(("search", "method", "parameters"), rows())


def _parameters(strategy: Any) -> Iterator[str]:
    """Yield the parameters of a strategy, or of its class, with their defaults."""
    text = options_text(strategy() if inspect.isclass(strategy) else strategy, None)
    for option in text.split(",") if text else ():
        name, _, value = option.partition("=")
        yield f"`{name}` {value}"


def _first(described: object) -> str:
    """Return the first paragraph of a docstring."""
    return (inspect.getdoc(described) or "").partition("\n\n")[0]


def agents() -> str:
    """Return the table of agents: the algorithm and its configuration."""

    def rows() -> Iterator[tuple[str, ...]]:
        for name in AGENTS.names():
            config: type[Any] = AGENTS.load(name)
            page = "" if Path(inspect.getfile(config)).parent.name != "algorithms" else config.__module__
            yield f"`{name}`", _first(sys.modules[config.__module__]), f"`{page}.{config.__name__}`"

    return table(("agent", "algorithm", "configuration"), rows())


def hyperparameters() -> str:
    """Return for each agent a heading and the table of the hyper-parameters, those of `--set`."""
    return "\n".join(f"## {name}\n\n{_hyperparameters(AGENTS.load(name))}" for name in AGENTS.builtin)


def paper_recipes() -> str:
    """Return the table of the set-ups of publications, with the environments that offer them."""
    homes: dict[str, list[str]] = {}
    sources: dict[str, str] = {}
    for environment in ENVIRONMENTS.builtin:
        for name, recipe in ENVIRONMENTS.load(environment).recipes.items():
            if recipe.source:
                homes.setdefault(name, []).append(environment)
                sources[name] = recipe.source
    rows = ((f"`{name}`", _code(homes[name]), sources[name]) for name in homes)
    return table(("recipe", "environments", "source"), rows)


def translations() -> str:
    """Return the table of other systems' names of options, with the names here."""
    rows = ((entry.system, f"`{entry.there}`", f"`{entry.here}`", entry.note) for entry in TRANSLATIONS)
    return table(("system", "there", "here", "values"), rows)


def agent_modules() -> str:
    """Return the references to the modules of the agents, for mkdocstrings."""
    return "".join(f"::: {AGENTS.load(name).__module__}\n" for name in AGENTS.builtin)


def _hyperparameters(config: type[Any]) -> str:
    rows = [
        (f"`{field.name}`", _text_of(field.default), _range(field.type), meaning)
        for field, meaning in _documented(config)
    ]
    return table(("hyper-parameter", "default", "values", "meaning"), rows)


def _range(annotation: Any) -> str:
    limits = next((part for part in get_args(annotation) if isinstance(part, Range)), None)
    if limits is None:
        words = [word for word in get_args(annotation) if isinstance(word, str)]
        return _code(words)
    bounds = (
        ("from", limits.low, ""),
        ("above", limits.above, ""),
        ("to", limits.high if limits.high is not None and limits.high < 1e9 else None, ""),
        ("below", limits.below, ""),
    )
    return ", ".join(f"{word} {bound:,}" for word, bound, _ in bounds if bound is not None)


def _text_of(default: object) -> str:
    if default is MISSING:
        return ""
    if isinstance(default, bool):
        return str(default).lower()
    if isinstance(default, tuple):
        return ",".join(map(str, default))  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    return "" if default is None else str(default)


def _documented(kind: type[Any]) -> Iterator[tuple[Field[Any], str]]:
    """Yield the fields of a dataclass, each with the docstring below it."""
    texts: dict[str, str] = {}
    for owner in reversed(kind.__mro__):
        if is_dataclass(owner):
            texts |= dict(_attribute_docstrings(owner))
    for field in fields(kind):
        yield field, texts.get(field.name, "")


def _attribute_docstrings(owner: type[Any]) -> Iterator[tuple[str, str]]:
    [definition] = ast.parse(inspect.cleandoc("\n" + inspect.getsource(owner))).body
    assert isinstance(definition, ast.ClassDef)
    body = definition.body
    for statement, following in pairwise(body):
        if isinstance(statement, ast.AnnAssign) and isinstance(following, ast.Expr):
            name, text = statement.target, following.value
            if isinstance(name, ast.Name) and isinstance(text, ast.Constant):
                yield name.id, inspect.cleandoc(str(text.value))


def commands() -> str:
    """Return the table of commands."""
    rows = ((f"[`irgym {name}`](#{name})", text) for name, text in SUMMARIES.items())
    return table(("command", "does"), rows)


def command_options(name: str) -> str:
    """Return the tables of a command's positional arguments and options."""
    rows = [
        (_option(field), _text_of(field.default), meaning) for field, meaning in _options(command_class(name))
    ]
    return table(("option", "default", "meaning"), rows)


def _options(kind: type[Any]) -> Iterator[tuple[Field[Any], str]]:
    for field, meaning in _documented(kind):
        inner: Any = field.default_factory if field.default_factory is not MISSING else None
        if inner is not None and is_dataclass(inner):
            yield from _options(inner)  # pyright: ignore[reportArgumentType, reportUnknownArgumentType]
        elif HIDDEN not in getattr(field.type, "__metadata__", ()):
            yield field, meaning


def _option(field: Field[Any]) -> str:
    positional = getattr(field.type, "__metadata__", ()) == Positional[str].__metadata__  # pyright: ignore
    name = field.name.replace("_", "-")
    return f"`{name.upper()}`" if positional else f"`--{name}`"


def capability_table() -> str:
    """Return the table of capabilities: the protocols that tasks may satisfy."""

    def rows() -> Iterator[tuple[str, ...]]:
        for name, protocol in _protocols(capabilities):
            methods = [member for member in vars(protocol) if not member.startswith("_")]
            yield f"`{name}`", _first(protocol), _code(methods)

    return table(("capability", "offers", "methods"), rows())


def _protocols(module: ModuleType) -> Iterator[tuple[str, type[Any]]]:
    for name, value in vars(module).items():
        if inspect.isclass(value) and Protocol in value.__bases__ and value.__module__ == module.__name__:
            yield name, value


STATES = {"everywhere": "every state", "ends": "first and last states", "once": "the last state of one walk"}
"""Where rules about states are checked, in words."""


def rules() -> str:
    """Return the table of the rules that environments and tasks must keep."""
    rows = ((f"`{name}`", rule.demand, _checked(rule)) for name, rule in RULES.items())
    return table(("rule", "demand", "checked on"), rows)


def _checked(rule: Rule) -> str:
    if isinstance(rule, EnvironmentRule):
        return "the environment"
    place = "states with equal keys" if isinstance(rule, PairRule) else STATES[rule.where]
    return place + (", measured" if rule.measures else "")


def agent_rules() -> str:
    """Return the table of the rules that agents must keep, in the order of checking."""
    return table(("rule", "demand"), ((f"`{rule.name}`", rule.demand) for rule in AGENT_RULES))


def loops_actions() -> str:
    """Return the table of the actions of `loops`."""
    from irgym.envs.loops.actions import TRANSFORMATIONS

    rows = ((_written(known.kind), known.effect, known.condition) for known in TRANSFORMATIONS)
    return table(("action", "effect", "when it applies"), rows)


def _written(kind: ActionKind) -> str:
    """Return the texts of the first and the last action of a kind."""
    texts = kind.form().split()
    return " ... ".join(f"`{text}`" for text in dict.fromkeys((texts[0], texts[-1])))


def hlo_passes() -> str:
    """Return the table of the actions of `hlo`, and the default orders that run each."""
    from irgym.envs.hlo.actions import PASSES
    from irgym.envs.hlo.compiling.pipelines import CORE, CPU

    def orders(passes: Sequence[str]) -> str:
        stages = ((order.name, {step for stage in order.stages for step in stage}) for order in (CORE, CPU))
        return ", ".join(name for name, steps in stages if steps.intersection(passes[-1:]))

    rows = ((f"`{action.name}`", action.summary, orders(action.passes)) for action in PASSES)
    return table(("action", "effect", "default orders that run it"), rows)


def hlo_families(kind: str) -> str:
    """Return the table of the families of `hlo`: of `networks` or of `numerics`."""
    from irgym.envs.hlo.programs.families import FAMILIES
    from irgym.envs.hlo.programs.numeric_families import NUMERIC_FAMILIES

    numeric = {family.name for family in NUMERIC_FAMILIES}
    common = {"mode", "shape", "dtype", "optimizer", "clip"}
    rows = [
        (f"`{family.name}`", family.summary, ", ".join(_family_options(family, common)))
        for family in FAMILIES.values()
        if (family.name in numeric) == (kind == "numerics")
    ]
    return table(("family", "program", "parameters: default in tiny / full shapes"), rows)


def _family_options(family: Family, common: set[str]) -> Iterator[str]:
    return (_family_option(option) for option in family.options if option.name not in common)


def _family_option(option: Option) -> str:
    if option.choices:
        return f"`{option.name}` {' or '.join(option.choices)}"
    values = dict.fromkeys([option.default, *(value for _, value in option.presets)])
    return f"`{option.name}` " + " / ".join(_text_of(value) for value in values)


MAKERS: dict[str, Callable[..., str]] = {
    "environments": environments,
    "environment": environment,
    "searches": searches,
    "agents": agents,
    "recipes": paper_recipes,
    "translations": translations,
    "hyperparameters": hyperparameters,
    "agent-modules": agent_modules,
    "commands": commands,
    "command": command_options,
    "capabilities": capability_table,
    "rules": rules,
    "agent-rules": agent_rules,
    "loops-actions": loops_actions,
    "hlo-passes": hlo_passes,
    "hlo-families": hlo_families,
}
"""Functions that make tables, by the name in the marker; the rest of the marker are their arguments."""


def generated(text: str) -> str:
    """Return a page with its generated tables up to date.

    Raises:
        KeyError: A marker names no table.
    """

    def renewed(found: re.Match[str]) -> str:
        name, *arguments = found[2].split()
        return f"{found[1]}\n{MAKERS[name](*arguments)}\n{found[4]}"

    return BLOCK.sub(renewed, text)


def main() -> int:
    """Rewrite the pages, or list those that are out of date."""
    stale = {page: new for page in PAGES if (new := generated(text := page.read_text())) != text}
    check = "--check" in sys.argv[1:]
    for page, text in stale.items():
        print(f"{'out of date' if check else 'written'}: {page.relative_to(ROOT)}")
        if not check:
            page.write_text(text)
    return int(check and bool(stale))


if __name__ == "__main__":
    sys.exit(main())
