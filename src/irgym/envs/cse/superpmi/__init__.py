"""The .NET JIT through SuperPMI, which compiles recorded methods again with the choices that it is told."""
