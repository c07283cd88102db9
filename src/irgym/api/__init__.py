"""The functions that `import irgym` offers, one file for each thing that a user wants done.

Each takes plain values and returns one value, which holds all that the command line prints; the commands of
`irgym.cli` call them.
"""
