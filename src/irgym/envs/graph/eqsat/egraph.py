"""An e-graph of tensor operators in egglog, which merges equal values and equal operators of them.

egglog (Zhang et al., PLDI 2023) maintains the equalities and answers queries. Types, weights and attributes
stay in Python, by number of the value. Facts are loaded from files, which is the fastest way.
"""

from collections.abc import Generator, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from irgym.base.errors import BackendError
from irgym.envs.graph.eqsat.queries import Arities, Query
from irgym.envs.graph.programs.sources import INSTALL_PEERS
from irgym.envs.graph.rewriting.language import ANY, CLASSES

ABSENT = 0
"""Number of a missing operand."""

_START = """
(sort Value)
(sort Tuple)
(constructor Number (i64) Value)
(constructor Tupled (i64) Tuple)
(constructor Result (Tuple i64) Value)
(ruleset facts)
(relation known (i64))
(rule ((known x)) ((Number x)) :ruleset facts)
(relation same (i64 i64))
(rule ((same x y)) ((union (Number x) (Number y))) :ruleset facts)
(relation result (i64 i64 i64))
(rule ((result t place x)) ((union (Number x) (Result (Tupled t) place))) :ruleset facts)
"""
"""An operator with one result is a value; one with several is a tuple, whose parts are `Result` values."""


@dataclass(frozen=True)
class ENode:
    """An operator applied to values.

    Attributes:
        operator: ONNX's name of the operator, with its domain.
        head: Number of the attributes, together with the pattern of unused results.
        inputs: Numbers of values, `ABSENT` for missing operands.
        outputs: Numbers of values, `ABSENT` for unused results.
        several: Number of the tuple of results if there are several; else `ABSENT`.
    """

    operator: str
    head: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    several: int = ABSENT


@cache
def _bindings() -> Any:
    """Import egglog, in a separate thread: its classes keep the frames that import them, with all variables.

    Raises:
        BackendError: It is not installed.
    """
    try:
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(import_module, "egglog.bindings").result()
    except ModuleNotFoundError as error:
        raise BackendError(f"egglog is not installed: run {INSTALL_PEERS}") from error


class EGraph:
    """An e-graph. Values have numbers from 1 on; the least number of equal values represents them.

    Attributes:
        nodes: The operators after the last `rebuild`, in a deterministic order.

    Raises:
        BackendError: egglog is not installed.
    """

    def __init__(self) -> None:
        self._egglog: Any = _bindings().EGraph()
        self._facts: dict[str, dict[tuple[int | str, ...], None]] = {}
        self._declared: set[str] = set()
        self._asked: dict[Query, str] = {}
        self._known: dict[tuple[str, int, tuple[int, ...]], ENode] = {}
        self._canonical: dict[int, int] = {}
        self._values: dict[Any, int] = {}
        self._arities: dict[str, set[tuple[int, int]]] = {}
        self._tuples = 0
        self.nodes: tuple[ENode, ...] = ()
        self._run(_START)
        for name, operators in CLASSES.items():
            facts = "".join(f'(class-{name} "{operator}")' for operator in sorted(operators))
            self._run(f"(relation class-{name} (String)) {facts}")
        self.add_value(ABSENT)

    def __len__(self) -> int:
        """Return the number of operators, pending ones included."""
        return len(self._known)

    @contextmanager
    def trial(self) -> Generator[None]:
        """Undo all changes at the end of a block. There must be no pending operators at its beginning."""
        before = dict(vars(self))
        for name in ("_facts", "_declared", "_asked", "_known"):
            before[name] = before[name].copy()
        before["_arities"] = {operator: arities.copy() for operator, arities in self._arities.items()}
        self._run("(push)")
        try:
            yield
        finally:
            self._run("(pop)")
            vars(self).update(before)

    def canonical(self, value: int) -> int:
        """Return the number that represents a value; the number itself for a new value."""
        return self._canonical.get(value, value)

    def add_value(self, value: int) -> None:
        """Add a value, such as a weight."""
        self._facts.setdefault("known", {})[value,] = None

    def add_equal(self, value: int, other: int) -> None:
        """Add the fact that two values are equal."""
        if value != other:
            self._facts.setdefault("same", {})[value, other] = None

    def find(self, operator: str, head: int, inputs: tuple[int, ...]) -> ENode | None:
        """Return an operator if it exists; the numbers of its values must be canonical."""
        return self._known.get((operator, head, inputs))

    def add(self, operator: str, head: int, inputs: tuple[int, ...], outputs: tuple[int, ...]) -> None:
        """Add an operator, which must not exist yet."""
        node = ENode(operator, head, inputs, outputs, ABSENT if len(outputs) == 1 else self._tuples + 1)
        self._known[operator, head, inputs] = node
        kind = self._declare(len(inputs), len(outputs))
        self._facts.setdefault(f"fact-{kind}", {})[operator, head, *inputs, node.several or outputs[0]] = None
        if node.several:
            self._tuples = node.several
            for place, value in enumerate(outputs):
                if value:
                    self._facts.setdefault("result", {})[node.several, place, value] = None

    def _declare(self, inputs: int, outputs: int) -> str:
        """Return egglog's name for operators with a number of operands and results, declaring it first."""
        kind = f"of-{inputs}-to-{outputs}"
        if kind not in self._declared:
            self._declared.add(kind)
            holder, sort = ("Number", "Value") if outputs == 1 else ("Tupled", "Tuple")
            names = [f"x{place}" for place in range(inputs)]
            operands = " ".join(f"(Number {name})" for name in names)
            self._run(f"""
                (constructor {kind} (String i64 {"Value " * inputs}) {sort})
                (relation fact-{kind} (String i64 {"i64 " * inputs} i64))
                (rule ((fact-{kind} operator head {" ".join(names)} y))
                      ((union ({holder} y) ({kind} operator head {operands}))) :ruleset facts)
            """)
        return kind

    def rebuild(self) -> None:
        """Load pending facts, and merge values and operators that are equal after them."""
        with TemporaryDirectory(prefix="irgym-eqsat-") as folder:
            for name, rows in self._facts.items():
                path = Path(folder, f"{name}.tsv")
                path.write_text("".join("\t".join(map(str, row)) + "\n" for row in rows), "utf-8")
                self._run(f'(input {name} "{path}")')
        self._facts = {}
        self._run("(run facts 1)")
        self._read()

    def _read(self) -> None:
        tables: Mapping[str, Any] = self._egglog.freeze().functions
        self._values, self._canonical = self._numbers(tables["Number"])
        tuples, _ = self._numbers(tables["Tupled"])
        results: dict[tuple[int, int], int] = {}
        for row in tables["Result"].rows:
            place = self._egglog.value_to_i64(row.inputs[1])
            results[tuples[row.inputs[0]], place] = self._values[row.output]
        nodes: list[ENode] = []
        for kind in sorted(self._declared):
            outputs = int(kind.rpartition("-")[2])
            for row in tables[kind].rows:
                operator = self._egglog.value_to_string(row.inputs[0])
                head = self._egglog.value_to_i64(row.inputs[1])
                inputs = tuple(self._values[value] for value in row.inputs[2:])
                if outputs == 1:
                    nodes.append(ENode(operator, head, inputs, (self._values[row.output],)))
                else:
                    held = tuples[row.output]
                    parts = tuple(results.get((held, place), ABSENT) for place in range(outputs))
                    nodes.append(ENode(operator, head, inputs, parts, held))
        # Sorted, since egglog's order is arbitrary.
        self.nodes = tuple(
            sorted(nodes, key=lambda node: (node.outputs, node.operator, node.head, node.inputs))
        )
        self._known = {(node.operator, node.head, node.inputs): node for node in self.nodes}
        for node in self.nodes:
            self._arities.setdefault(node.operator, set()).add((len(node.inputs), len(node.outputs)))

    def _numbers(self, table: Any) -> tuple[dict[Any, int], dict[int, int]]:
        """Return the least number of each value of egglog, and the least equal number of each number."""
        pairs = [(row.output, self._egglog.value_to_i64(row.inputs[0])) for row in table.rows]
        least: dict[Any, int] = {}
        for value, number in pairs:
            least[value] = min(number, least.get(value, number))
        return least, {number: least[value] for value, number in pairs}

    def arities(self, operator: str) -> Arities:
        """Return the numbers of operands and results of an operator, of a class, or of any operator."""
        members = CLASSES.get(operator, {operator})
        return frozenset(
            arity
            for name, found in self._arities.items()
            if operator == ANY or name in members
            for arity in found
        )

    def matches(self, asked: Iterable[Query]) -> list[tuple[Query, tuple[ENode, ...]]]:
        """Return all matches of queries, old ones included, with operators in the order of the query."""
        names = {query: self._ask(query) for query in asked}
        tables: Mapping[str, Any] = self._egglog.freeze().functions if names else {}
        return [
            (query, self._match(query, row.inputs))
            for query, name in names.items()
            for row in tables[name].rows
        ]

    def _ask(self, query: Query) -> str:
        """Run a query, and return the name of the relation with all its answers, old ones included."""
        name = self._asked.get(query)
        if name is None:
            name = self._asked[query] = f"found-{len(self._asked)}"
            conditions: list[str] = []
            sorts: list[str] = []
            columns: list[str] = []
            for place, atom in enumerate(query):
                kind = self._declare(len(atom.inputs), len(atom.outputs))
                exact = atom.operator not in CLASSES and atom.operator != ANY
                operator = f'"{atom.operator}"' if exact else f"operator{place}"
                if atom.operator in CLASSES:
                    conditions.append(f"(class-{atom.operator} {operator})")
                inputs = " ".join(f"v-{variable}" for variable in atom.inputs)
                made = f"({kind} {operator} head{place} {inputs})"
                if len(atom.outputs) == 1:
                    conditions.append(f"(= v-{atom.outputs[0]} {made})")
                else:
                    conditions.append(f"(= tuple{place} {made})")
                    conditions += [
                        f"(= v-{variable} (Result tuple{place} {at}))"
                        for at, variable in enumerate(atom.outputs)
                        if variable
                    ]
                sorts += ["String", "i64", *["Value"] * len(atom.inputs)]
                columns += [operator, f"head{place}", *(f"v-{variable}" for variable in atom.inputs)]
            self._run(f"""
                (relation {name} ({" ".join(sorts)}))
                (ruleset rules-{name})
                (rule ({" ".join(conditions)}) (({name} {" ".join(columns)})) :ruleset rules-{name})
            """)
        self._run(f"(run rules-{name} 1)")
        return name

    def _match(self, query: Query, row: list[Any]) -> tuple[ENode, ...]:
        nodes: list[ENode] = []
        for atom in query:
            operands = len(atom.inputs)
            operator = self._egglog.value_to_string(row[0])
            head = self._egglog.value_to_i64(row[1])
            inputs = tuple(self._values[value] for value in row[2 : 2 + operands])
            nodes.append(self._known[operator, head, inputs])
            row = row[2 + operands :]
        return tuple(nodes)

    def _run(self, program: str) -> None:
        self._egglog.run_program(*self._egglog.parse_program(program))
