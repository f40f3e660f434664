"""The parts of the screens. Each has a small imperative API and posts messages; none calls an engine or a store."""
