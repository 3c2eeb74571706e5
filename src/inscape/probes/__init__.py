"""Where we look: segments, simplices and patches of the input space, and how to draw them from data."""

from inscape.probes.patch import Patch
from inscape.probes.probe import Probe
from inscape.probes.sampling import sample_probes
from inscape.probes.segment import Segment
from inscape.probes.simplex import Simplex

__all__ = ["Patch", "Probe", "Segment", "Simplex", "sample_probes"]
