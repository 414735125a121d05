"""Models in and out: to PyTorch, GPT-2 and ONNX, and from other people's runs."""

from algoscope.exchange.export import export as export
from algoscope.exchange.imports import import_model as import_model
