"""Programs of the `hlo` environment: models in JAX and files, their URIs, and data sets.

A model family is an entry in `families.py` or `numeric_families.py` (its options) and a function in `models/`
(its code in JAX). `datasets.py` splits the families into training and test programs. `sources.py` turns a URI
into a file, through `lowering.py` in a child process.
"""
