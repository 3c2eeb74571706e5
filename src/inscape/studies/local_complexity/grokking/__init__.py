"""The study of late training: its runs, what they say, and the figures of both."""
