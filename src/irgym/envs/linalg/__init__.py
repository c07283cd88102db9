"""Scheduling MLIR linalg operations: tile, fuse, interchange, vectorise."""
