"""Pictures of planes: grids, meshes and faces, in one frame."""
