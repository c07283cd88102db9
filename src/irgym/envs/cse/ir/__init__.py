"""LLVM's IR as text: functions, flow of control, values, and what sharing makes of them."""
