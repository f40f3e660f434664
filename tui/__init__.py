"""The terminal application. It opens with bare ``localinfer``; until it exists that opens the line-based chat."""
