"""One layer of a network: every face is cut where a unit of the layer changes sign."""
