"""The tables that a chat on Supabase expects, over those of the store (``migrations/supabase.sql``)."""

from __future__ import annotations

from reactor_memory.database.migrations import migration_statements
from reactor_memory.database.operations import Statement, Steps
from reactor_memory.database.schema import migrations_folder


def supabase_tables() -> str:
    """The SQL that makes them in a database with the newest schema, for one transaction. Imports no Alembic."""
    return (migrations_folder() / "supabase.sql").read_text(encoding="utf-8")


def whole_script(revision: str | None) -> str:
    """What brings a database at `revision` (None: an empty one) there, to be run by hand."""
    pending = "".join(f"{statement}\n\n" for statement in migration_statements("postgresql", revision))
    return f"BEGIN;\n\n{pending}{supabase_tables()}\nCOMMIT;\n"


def make_supabase_tables() -> Steps[None]:
    yield Statement(supabase_tables())
