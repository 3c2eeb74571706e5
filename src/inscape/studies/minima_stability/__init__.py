"""Studies of where descent is stable and what that says of the minimum (Mulayoff, Michaeli, Soudry 2021)."""
