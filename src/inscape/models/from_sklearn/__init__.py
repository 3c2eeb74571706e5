"""Fitted estimators of scikit-learn, read as what exact methods need."""
