"""InstCount, Autophase and IR2Vec's counts from the text of a module, slowly and independently of LLVM."""

import re
from collections import Counter
from collections.abc import Collection, Iterator

from irgym.llvmir.ir.function import Function
from irgym.llvmir.ir.instruction import TERMINATORS, Instruction
from irgym.llvmir.ir.modules import ModuleText
from irgym.llvmir.ir.syntax import NAME


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


BINARY = _words("add fadd sub fsub mul fmul udiv sdiv fdiv urem srem frem shl lshr ashr and or xor")
CASTS = _words(
    "trunc zext sext fptoui fptosi uitofp sitofp fptrunc fpext ptrtoint ptrtoaddr inttoptr bitcast "
    "addrspacecast"
)
MEMORY = _words("getelementptr load store call invoke alloca")
UNARY = CASTS | _words("alloca load va_arg extractvalue fneg")
TYPED = _words("select freeze fneg extractelement insertelement ret store")

Operand = tuple[str, str]
"""Type and value."""

_OPENING, _CLOSING = "([{<", ")]}>"
_CALLED = re.compile(rf"(?<=\s)([@%]{NAME})\(")


def pieces(text: str, at: str) -> list[str]:
    """Split a text at a character outside brackets and quotes."""
    found, depth, quoted = [""], 0, False
    for letter in text:
        quoted ^= letter == '"'
        depth += 0 if quoted else (letter in _OPENING) - (letter in _CLOSING)
        if letter == at and not depth and not quoted:
            found.append("")
        else:
            found[-1] += letter
    return [piece.strip() for piece in found if piece.strip()]


def typed(text: str) -> Operand:
    """Read a type and a value, with attributes between them."""
    words = pieces(text, " ")
    return words[0], words[-1]


def listed(text: str) -> list[Operand]:
    """Read operands that are separated by commas."""
    return [typed(piece) for piece in pieces(text, ",")]


def call(rest: str) -> list[Operand]:
    """Read the arguments of a call, the operands of its bundles, then the callee."""
    found = called(rest)
    behind = f" {rest}"[found.end() - 1 :]
    end = _closing(behind)
    bundles = re.findall(r'"\w+"\(([^()]*)\)', behind[end:])
    return [
        *listed(behind[1:end]),
        *(pair for bundle in bundles for pair in listed(bundle)),
        ("ptr", found[1]),
    ]


def returned(rest: str) -> str:
    """Return the type that a call returns."""
    words = pieces(f" {rest}"[: called(rest).start()], " ")
    return words[-2] if words[-1].startswith("(") else words[-1]


def called(rest: str) -> re.Match[str]:
    """Return where a call with a space before it names what it calls.

    Raises:
        ValueError: It has no name, as inline assembly has none.
    """
    for match in _CALLED.finditer(f" {rest}"):
        if _depth(f" {rest}"[: match.start()]) == 0:
            return match
    raise ValueError(f"{rest} calls nothing by name")


def _depth(text: str) -> int:
    return sum((letter in _OPENING) - (letter in _CLOSING) for letter in text)


def _closing(text: str) -> int:
    depth = 0
    for place, letter in enumerate(text):
        depth += (letter in "([{") - (letter in ")]}")
        if not depth:
            return place
    raise ValueError(text)


def operands(instruction: Instruction) -> list[Operand]:
    """Return the operands in LLVM's order, but for the values of a switch's cases.

    Raises:
        ValueError: This test knows no such instruction.
    """
    rest, opcode = instruction.rest.removeprefix("volatile "), instruction.opcode
    if opcode in BINARY or opcode in ("icmp", "fcmp"):
        words = pieces(rest, " ")
        rest = " ".join(words[1:]) if opcode in ("icmp", "fcmp") else rest
        left, right = pieces(rest, ",")
        kind, value = typed(left)
        return [(kind, value), (kind, right)]
    if opcode in CASTS:
        return [typed(rest.rpartition(" to ")[0])]
    if opcode in TYPED:
        return [] if rest == "void" else [pair for pair in listed(rest) if pair[0] != "align"]
    if opcode == "phi":
        kind = pieces(rest, " ")[0]
        return [(kind, pieces(pair.strip("[] "), ",")[0]) for pair in pieces(rest[len(kind) :], ",")]
    if opcode == "alloca":
        sizes = [pair for pair in listed(rest)[1:] if pair[0] != "align"]
        return sizes or [("i32", "1")]
    if opcode in ("load", "getelementptr"):
        return [pair for pair in listed(rest)[1:] if pair[0] != "align"]
    if opcode in ("extractvalue", "insertvalue", "shufflevector"):
        return listed(rest)[: 1 if opcode == "extractvalue" else 2]
    if opcode == "call":
        return call(rest)
    if opcode in ("br", "switch"):
        return listed(rest.partition("[")[0])[:1] * (not rest.startswith("label")) + [
            ("label", name) for name in targets(instruction)
        ]
    if opcode == "unreachable":
        return []
    raise ValueError(f"no operands of {opcode} are known")


def targets(instruction: Instruction) -> list[str]:
    """Return the successors of a terminator, with repetitions."""
    return re.findall(rf"label (%{NAME})", instruction.rest) if instruction.opcode in TERMINATORS else []


def cases(instruction: Instruction) -> list[Operand]:
    """Return the values of a switch's cases."""
    return re.findall(r"(i\d+) (-?\d+), label", instruction.rest) if instruction.opcode == "switch" else []


def constant(operand: Operand) -> bool:
    """Say whether an operand is a constant; globals are."""
    return operand[0] not in ("label", "metadata") and not operand[1].startswith("%")


def number(operand: Operand) -> int | None:
    """Return the value of an integer constant; None for other operands."""
    kind, value = operand
    if not re.fullmatch(r"i\d+", kind):
        return None
    return {"true": 1, "false": 0}.get(value, int(value) if re.fullmatch(r"-?\d+", value) else None)


def functions(text: str) -> tuple[list[Function], frozenset[str]]:
    """Return the functions of a module, and the names of all, declarations included."""
    module = ModuleText.read(text)
    read = [Function.read(text.name, text.header, text.lines) for text in module.functions.values()]
    return read, frozenset((*module.functions, *module.declared))


def by_hand(text: str) -> Counter[str]:
    """Return InstCount and Autophase of a module by name, opcodes in lower case.

    Blocks must all be reachable, as those of IR2Vec's counts are.
    """
    found: Counter[str] = Counter()
    read, known = functions(text)
    found["TotalFuncs"] = len(known)
    for function in read:
        entering = Counter(
            name[1:].strip('"') for _, instruction in function for name in targets(instruction)
        )
        for block in function.blocks:
            leaving = [name[1:].strip('"') for name in targets(block.instructions[-1])]
            _block(found, block.instructions, entering[block.name], [entering[name] for name in leaving])
            for instruction in block.instructions:
                found.update(_instruction(instruction, known))
    return found


def _block(
    found: Counter[str], instructions: tuple[Instruction, ...], entering: int, leads: list[int]
) -> None:
    """Add a block.

    Args:
        found: What it is added to.
        instructions: Its instructions.
        entering: Number of edges that lead to it.
        leads: The same number of each successor.
    """
    phis = [instruction for instruction in instructions if instruction.opcode == "phi"]
    incoming = sum(len(operands(instruction)) for instruction in phis)
    near = {1: "one", 2: "two"}
    if name := near.get(entering, "more" if entering else ""):
        found[f"{name}Pred" + "s" * (name == "more")] += 1
    if name := near.get(len(leads)):
        found[f"{name}Successor"] += 1
    both = {(1, 1): "onePredOneSuc", (2, 1): "twoPredOneSuc", (1, 2): "onePredTwoSuc", (2, 2): "twoEach"}
    names = [both.get((entering, len(leads)), "")]
    names.append("BBNoPhi" if not phis else "BB03Phi" if len(phis) <= 3 else "BBHiPhi")
    names.append("BBNumArgsHi" if incoming > 5 else "BBNumArgsLo" if incoming else "")
    names.append("BlockLow" if len(instructions) < 15 else "BlockMid" if len(instructions) <= 500 else "")
    names.append("BeginPhi" if instructions[0].opcode == "phi" else "")
    found.update(name for name in names if name)
    found.update(
        TotalBlocks=1,
        TotalInsts=len(instructions),
        NumEdges=len(leads),
        ArgsPhi=incoming,
        CriticalCount=sum(count > 1 for count in leads) if len(leads) > 1 else 0,
    )


def _instruction(instruction: Instruction, known: Collection[str]) -> Iterator[str]:
    """Yield a name for each number that grows by an instruction.

    Args:
        instruction: The instruction.
        known: Names of the module's functions.
    """
    yield "ptrtoint" if instruction.opcode == "ptrtoaddr" else instruction.opcode
    if instruction.opcode in MEMORY:
        yield "TotalMemInst"
    if instruction.opcode in UNARY:
        yield "testUnary"
    if instruction.opcode == "br" and instruction.rest.startswith("label"):
        yield "UncondBranches"
    if (
        instruction.opcode == "call"
        and instruction.callee
        and re.fullmatch(r"i\d+", returned(instruction.rest))
    ):
        yield "returnInt"
    taken = operands(instruction)
    if instruction.opcode in BINARY and any(map(constant, taken)):
        yield "binaryConstArg"
    for operand in (*taken, *cases(instruction)):
        value = number(operand)
        if value is not None:
            yield {"i32": "const32Bit", "i64": "const64Bit"}.get(operand[0], "other")
            yield {0: "numConstZeroes", 1: "numConstOnes"}.get(value, "other")
    for kind, value in taken:
        if kind == "ptr":
            yield "Function" if value in known else "Pointer"
        else:
            yield "Constant" if constant((kind, value)) else "Variable"
    if instruction.opcode in ("icmp", "fcmp"):
        yield f"{instruction.opcode.upper()}_{pieces(instruction.rest, ' ')[0]}"
