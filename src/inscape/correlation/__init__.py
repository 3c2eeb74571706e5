"""Coefficients over the configurations of a study, each with its interval; `correlate` is the verb."""
