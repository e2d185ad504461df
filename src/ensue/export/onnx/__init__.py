"""ONNX: layers as standard operators or as `Scan`, and operators as layers."""
