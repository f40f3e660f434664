"""What the list of models shows: its lines, the list itself, and everything about one model."""
