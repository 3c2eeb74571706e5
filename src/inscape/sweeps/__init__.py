"""The engine of every study: its grid, its store, the sweep over what is missing, and the run as a whole."""
