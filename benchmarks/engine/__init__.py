"""Measuring the native engine against torch.nn, a plain torch loop, JAX and ONNX Runtime."""
