"""The .NET JIT through SuperPMI, which recompiles recorded methods under given choices."""
