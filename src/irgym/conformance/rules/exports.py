"""Rules about what is written of a state: its description and its exports."""

from pathlib import Path
from tempfile import TemporaryDirectory

from irgym.base.errors import IrgymError
from irgym.conformance.case import Case
from irgym.conformance.rule import StateRule


def _written(case: Case) -> str:
    # A list of choices is empty where none is taken.
    original = case.task.key(case.state) == case.task.key(case.task.initial())
    with TemporaryDirectory(prefix="irgym-export-") as folder:
        for suffix in case.task.forms:
            path = Path(folder) / f"program{suffix}"
            try:
                files = case.task.export(case.state, path)
            except IrgymError as error:
                # A state may have no such form; then one sentence says so, and nothing is left behind.
                if "\n" in str(error) or path.exists():
                    return (
                        f"the export to {suffix} fails with more than a sentence, or leaves a file: {error}"
                    )
                continue
            if path not in files:
                return f"the export to {suffix} does not return {path.name} among the files written"
            for file in files:
                if not file.is_file() or not (file.stat().st_size or original):
                    return f"the export to {suffix} returns {file.name}, which is not there or is empty"
    return ""


def _refused(case: Case) -> str:
    with TemporaryDirectory(prefix="irgym-export-") as folder:
        path = Path(folder) / "program.no-such-form"
        try:
            case.task.export(case.state, path)
        except IrgymError as error:
            return (
                "" if "\n" not in str(error) else "the error about a wrong suffix is more than one sentence"
            )
        return f"the suffix {path.suffix} is none of the forms, and the export raises nothing"


def _described(case: Case) -> str:
    return "" if case.task.describe(case.state) else "describe() returns nothing"


EXPORT_RULES = (
    StateRule("describe", "A state is described in words or code.", _described),
    StateRule(
        "export",
        "The export to each form writes files; a list of choices may be empty at the start.",
        _written,
        "once",
    ),
    StateRule(
        "export-suffix",
        "The export to a suffix that is no form is refused in one sentence.",
        _refused,
        "ends",
    ),
)
