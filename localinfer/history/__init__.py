"""The person's conversations: kept in one file, found again by their words, read as a tree, exported.

``store`` keeps, ``tree`` reads branches, ``export`` writes them out; ``values`` is what they speak of. Nothing of it
loads SQLite before a ``History`` is opened.
"""
