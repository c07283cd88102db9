"""Type-based aliasing follows LLVM's rules."""

import pytest

from irgym.llvmir.interpreter.aliasing import Aliasing
from irgym.llvmir.ir.modules import ModuleText

METADATA = """
!0 = !{!"root"}
!1 = !{!"char", !0, i64 0}
!2 = !{!"int", !1, i64 0}
!3 = !{!"float", !1, i64 0}
!4 = !{!"one", !2, i64 0, !3, i64 4}
!5 = !{!"two", !2, i64 0, !4, i64 8}
!10 = !{!1, !1, i64 0}
!11 = !{!2, !2, i64 0}
!12 = !{!3, !3, i64 0}
!13 = !{!4, !2, i64 0}
!14 = !{!4, !3, i64 4}
!15 = !{!5, !3, i64 12}
!16 = !{!5, !2, i64 0}
"""


@pytest.mark.parametrize(
    ("first", "second", "overlap"),
    [
        ("!11", "!11", True),
        ("!11", "!12", False),
        ("!10", "!12", True),
        ("!11", "!13", True),
        ("!12", "!13", False),
        ("!13", "!14", False),
        ("!14", "!15", True),
        ("!13", "!15", False),
        ("!13", "!16", False),
        ("!11", "!99", True),
    ],
)
def test_rules(first: str, second: str, overlap: bool) -> None:
    """Scalars overlap with their kind and with characters, fields with equal fields of equal structs."""
    aliasing = Aliasing(ModuleText.read(METADATA).entries)
    assert aliasing(first, second) == aliasing(second, first) == overlap
