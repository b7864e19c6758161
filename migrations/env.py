"""Runs the migrations of Reactor Memory as SQL text.

The library's own drivers execute the text in one transaction (`reactor_memory.core.log.migrating`), so a migration
is written with Alembic's operations and `op.execute` only: it never sees a connection.
"""

from alembic import context

context.configure(
    dialect_name=context.config.get_main_option("dialect"),
    version_table=context.config.get_main_option("version_table"),
    literal_binds=True,
    dialect_opts={"paramstyle": "named"},
)
context.run_migrations()
