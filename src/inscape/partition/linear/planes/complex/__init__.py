"""The planar complex: vertices, edges and faces linked by half-edges, and what is done with them as such."""
