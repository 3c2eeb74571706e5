"""Decision regions by evaluating a grid: the grid, its points and their connected components."""
