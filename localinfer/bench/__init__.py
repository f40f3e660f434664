"""Measuring models: what they do here, what a server does with the same work, and whether that differs from before."""
