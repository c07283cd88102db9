"""Code of the scripts beside this folder: opening and exporting models, and samples of operators."""
