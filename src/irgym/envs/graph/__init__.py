"""graph: rewriting ONNX models."""
