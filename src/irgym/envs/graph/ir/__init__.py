"""Tensor graphs, and their conversion from and to ONNX models."""
