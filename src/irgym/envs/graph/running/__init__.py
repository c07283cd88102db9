"""Models in ONNX Runtime: how they are kept, run, timed and checked. All of it runs in a child process."""
