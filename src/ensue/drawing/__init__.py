"""Shapes and layout of pictures as SVG; knows no equations."""
