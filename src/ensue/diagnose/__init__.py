"""Diagnosis of networks: how gradients flow through time, and what stops them.

>>> found = flow_of_cell("SimpleRNN", FreshNetwork(hidden_size=8, steps=20, gain=0.5))
>>> [finding.name for finding in found.findings]
['vanishing']
"""

from ensue.diagnose.findings import Finding
from ensue.diagnose.flow import Flow, FlowSettings, flow_of
from ensue.diagnose.trained import FreshNetwork, flow_of_cell, flow_of_layer, flow_of_model

__all__ = [
    "Finding",
    "Flow",
    "FlowSettings",
    "FreshNetwork",
    "flow_of",
    "flow_of_cell",
    "flow_of_layer",
    "flow_of_model",
]
