"""Exact subdivision of a plane: every face on which a network is one affine map; compiled when first used.

The domain starts as one face of a planar complex (`complex/half_edges.py`), and the network is walked node by
node (`walk.py`). An affine node is evaluated at all vertices that there are. A piecewise-linear node is a
*layer*, which cuts the faces (`layer/cut.py`):

1. *Signs.* Since the values of the units are affine on each face, their signs at the vertices decide
   everything: a unit crosses the edges with different signs at their ends (`layer/sign_vectors.py`).
2. *Crossings.* They are located and sorted along each edge (`layer/edge_crossings.py`).
3. *Chords.* In each face that a unit crosses, its zero set is a chord from one crossing to the other. Two
   chords intersect exactly if their ends interleave around the face, so that which faces arise is decided
   without arithmetic; floats only order points along edges and chords (`layer/faces.py`,
   `layer/arrangement.py`, and `layer/buffers.py` for their arrays).
4. *Values.* The tensors that later nodes read are carried to the new vertices. A matrix product that reads
   the layer is not computed there but expanded along edges and chords, at the cost of a few columns for each
   vertex (`values/linear_map.py`, `values/values.py`, and `bent_line.py` for the formula). Of a large
   complex, what lies near gets near numbers first (`complex/renumber.py`).

A max-pool window, and in the end the label, is a maximum: its entries compete one after the other, each as a
layer of its own, and edges between faces with the same winners are removed (`layer/max_pool.py`,
`complex/dissolve.py`).

Degenerate and large cases: a sign is positive, negative, or zero within a bound for the rounding error
(`linear/rounding.py`); faces with a zero, or with several crossings in one point, take a slower path, where
lines may share points (`layer/ties.py`). A domain around the input 0, where all units of a network without
biases have their kink, starts as a fan of triangles (`subdivision.centre_of`). When the tensors do not fit
into memory (`plan.py`), the faces are taken in chunks, each to the end of the network before the next.

The chunks are joined and checked (`subdivision.py`): V - E + F = 1, and the areas add up to that of the
domain. A complex that fails is refused with an error.
"""

from inscape.arguments import old_names
from inscape.partition.linear.regions import LinearPlane

__getattr__ = old_names(__name__, {"PlaneRegions": LinearPlane})
