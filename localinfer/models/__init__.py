"""Models as files: the catalogue, references to models, fetching them, and a first look inside."""
