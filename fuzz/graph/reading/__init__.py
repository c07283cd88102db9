"""Modules of the scripts in the parent folder: opening and exporting models, and samples of operators."""
