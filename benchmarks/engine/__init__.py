"""Measuring the native engine beside torch.nn, a plain torch loop, JAX and ONNX Runtime."""
