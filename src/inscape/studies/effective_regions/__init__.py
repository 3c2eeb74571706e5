"""Studies of how few linear regions gradient flow leaves (Safran, Vardi, Lee 2022)."""
