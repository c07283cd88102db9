"""LLVM's IR as text: functions, control flow, expressions, and their text under a choice."""
