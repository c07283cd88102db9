"""Whether a function with some candidates shared computes what it computed before, bit for bit."""

from pathlib import Path

from irgym.core.cost import Validation
from irgym.envs.cse.ir.modules import visible, with_body
from irgym.envs.cse.running.arguments import signature_of
from irgym.envs.cse.running.execution import CALLS, outcomes
from irgym.envs.cse.scoring.scorer import function_at, verified

TOLERANCE = "bit for bit"


def compared(path: str, name: str, shared: tuple[int, ...], inputs: int, seed: int) -> Validation:
    """Have LLVM's verifier look at a choice, and run it on made-up arguments beside the function as written.

    Args:
        path: The module, prepared for this machine.
        name: Name of the function, sigil included.
        shared: The places of the candidates that are shared.
        inputs: Random inputs.
        seed: Seed of these.
    """
    said = verified(path, name, shared)
    if said:
        return Validation(False, 0.0, "LLVM's verifier", 0, said)
    function = function_at(path, name)
    header = function.function.header
    signature = signature_of(header, name)
    if signature is None:
        return _blind("its arguments cannot be made up: LLVM's verifier alone has looked at it")
    seen = visible(header, name)
    text = Path(path).read_text()
    bare = name.removeprefix("@").strip('"')
    before, after = (
        outcomes(with_body(text, header, function.sharing.lines(one), seen), bare, signature, inputs, seed)
        for one in ((), shared)
    )
    if isinstance(before, str):
        return _blind(f"on made-up arguments it does not run as written: {before}")
    if isinstance(after, str):
        return Validation(False, 0.0, TOLERANCE, inputs, after)
    wrong = sum(one != other for one, other in zip(before, after, strict=True))
    if wrong:
        detail = f"{wrong} of {len(before)} calls differ"
        return Validation(False, 0.0, TOLERANCE, inputs, detail)
    same = len(set(before)) < len(before) / CALLS
    return (
        _blind("it makes the same of all made-up arguments")
        if same
        else Validation(True, 0.0, TOLERANCE, inputs)
    )


def _blind(why: str) -> Validation:
    return Validation(True, 0.0, TOLERANCE, 0, blind=why)
