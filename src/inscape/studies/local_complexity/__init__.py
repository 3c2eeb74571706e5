"""Studies of the density of linear regions near data, over space and over training (Patel, Montufar 2025)."""
