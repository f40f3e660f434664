"""The chat layer, run in the worker: messages to token ids, and token bytes back to text and reasoning."""
