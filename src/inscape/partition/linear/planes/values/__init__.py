"""The tensors of a network at the vertices of a planar complex, and how they are carried to new vertices."""
