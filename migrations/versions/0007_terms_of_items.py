"""The words of items, for searches by what shares most words with a query: terms with spaces around and between.

Items that are there already get their words as they stand, in lower case, until they are put again.
"""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

BETWEEN_WORDS = '"{}[],:.;!?()-_/'


def upgrade() -> None:
    op.add_column("items", sa.Column("terms", sa.Text(), nullable=False, server_default=""))
    if op.get_context().dialect.name == "postgresql":
        op.execute("ALTER TABLE items ALTER COLUMN terms SET STATISTICS 0")  # they would keep samples of it
        op.execute("SELECT set_config('reactor_memory.all_users', 'yes', true)")
    words = sa.func.lower(sa.column("value"))
    for character in BETWEEN_WORDS:
        words = sa.func.replace(words, character, " ")
    items = sa.table("items", sa.column("terms", sa.Text()))
    op.execute(sa.update(items).values(terms=sa.literal(" ") + words + sa.literal(" ")))
