"""The tables, and how a file of an earlier version becomes one of this version. It runs no statement itself."""

APPLICATION_ID = 0x6C_69_63_68  # "lich": tells our files from other programs' databases

# Words are split and folded by `words.py`; what reaches this tokenizer only has to be split at spaces. The prefix
# indexes let a search for a single letter start without reading every word that begins with it.
_WORDS = "text, prefix = '1 2 3', tokenize = \"unicode61 remove_diacritics 0 categories 'L* N* Co M*'\""

_FIRST = (
    # AUTOINCREMENT: the number of something deleted never names something else.
    """CREATE TABLE conversations (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        title TEXT NOT NULL,
        created_s REAL NOT NULL,
        changed_s REAL NOT NULL,
        pinned INTEGER NOT NULL DEFAULT 0,
        model TEXT NOT NULL,
        head INTEGER,
        parameters TEXT NOT NULL,
        omissions TEXT NOT NULL DEFAULT '[]',
        deleted_s REAL
    )""",
    # The short columns come first: reading them does not touch the pages of a long text.
    """CREATE TABLE turns (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        conversation INTEGER NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
        parent INTEGER,
        role TEXT NOT NULL,
        created_s REAL NOT NULL,
        state TEXT NOT NULL,
        writer TEXT,
        indexed INTEGER NOT NULL DEFAULT 0,
        model TEXT NOT NULL,
        thought_s REAL,
        thought_tokens INTEGER NOT NULL DEFAULT 0,
        note TEXT NOT NULL DEFAULT '',
        metrics TEXT,
        content TEXT NOT NULL,
        reasoning TEXT NOT NULL,
        attachments TEXT NOT NULL
    )""",
    "CREATE INDEX listed ON conversations (pinned DESC, changed_s DESC, id DESC) WHERE deleted_s IS NULL",
    "CREATE INDEX newest ON conversations (changed_s DESC, id DESC) WHERE deleted_s IS NULL",
    "CREATE INDEX deleted ON conversations (deleted_s) WHERE deleted_s IS NOT NULL",
    "CREATE INDEX told ON turns (conversation, id)",
    "CREATE INDEX growing ON turns (id) WHERE state = 'growing'",
    "CREATE INDEX unindexed ON turns (id) WHERE indexed = 0",
    f"CREATE VIRTUAL TABLE words USING fts5 ({_WORDS})",  # rowid: of the turn
    f"CREATE VIRTUAL TABLE titles USING fts5 ({_WORDS})",  # rowid: of the conversation
)

MIGRATIONS: tuple[tuple[str, ...], ...] = (_FIRST,)
"""The statements that lead from version n to n + 1, which is kept as ``PRAGMA user_version``."""
