"""Where we look: segments, simplices and patches, how to draw them from data; boxes and balls."""

from inscape.probes.bodies import Ball, Body, Box
from inscape.probes.patch import Patch
from inscape.probes.probe import Probe
from inscape.probes.sampling import sample_probes
from inscape.probes.segment import Segment
from inscape.probes.simplex import Simplex

__all__ = ["Ball", "Body", "Box", "Patch", "Probe", "Segment", "Simplex", "sample_probes"]
