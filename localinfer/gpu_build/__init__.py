"""A build of llama.cpp for this machine's NVIDIA cards: what is here, how to have one, having it, proving it."""
