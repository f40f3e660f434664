"""``python -m localinfer.cli``: the same as the console script."""

from localinfer.cli import main

main()
