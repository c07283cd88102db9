"""Environment `graph`: which rewrite of an ONNX model to make next."""
