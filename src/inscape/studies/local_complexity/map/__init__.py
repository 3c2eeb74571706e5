"""The study of maps: the density of a coordinate network's linear regions beside lengths measured exactly."""
