"""Predictions of whether sharing pays, without compiling: facts, a cost test, a model of LLVM's code."""
