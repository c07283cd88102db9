"""Outcomes of validations in a child process."""

from irgym.core.cost import Call, Validation
from irgym.measure.isolation.child import Child, Raised, Returned


def validated(child: Child, call: Call, subject: str) -> tuple[str, str]:
    """Return the outcome of a validation, and a finding if it is a fault.

    Args:
        child: The process in which the validation runs.
        call: The validation.
        subject: Description of the checked schedule.
    """
    reply = child.call(call)
    if isinstance(reply, Returned) and isinstance(reply.value, Validation):
        found = reply.value
        if not found.ok:
            return "wrong", f"wrong: {subject}: {found.detail}"
        return ("not checkable", "") if found.blind else ("right", "")
    if isinstance(reply, Raised) and reply.user_error is not None:
        return "refused", f"refused: {subject}: {reply.message}"
    said = reply.message if isinstance(reply, Raised) else str(reply)
    return "failed", f"failed: {subject}: {said}"
