"""Pictures: arrays in, Axes out. Imports nothing else of inscape."""
