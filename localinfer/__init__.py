"""localinfer: run language models on your own machine. Importing the package loads nothing else."""

__version__ = "0.1.0"
