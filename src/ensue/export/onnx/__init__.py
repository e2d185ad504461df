"""ONNX: layers to standard operators or `Scan`, and operators to layers."""
