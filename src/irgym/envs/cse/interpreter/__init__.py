"""An interpreter of LLVM's IR that tracks poison: functions are translated to Python, block by block."""
