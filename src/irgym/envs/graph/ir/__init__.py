"""Tensor graphs: what they are, and how they are read from ONNX models and written to them."""
