"""What applications keep by namespace and key: JSON objects of their own, each user's apart.

The user comes first in the key; what belongs to nobody in particular has the empty user. On PostgreSQL the rows are
fenced like all rows of users.
"""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    by_code_point = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
    op.create_table(
        "items",
        sa.Column("user_id", by_code_point, nullable=False),
        sa.Column("namespace", by_code_point, nullable=False),
        sa.Column("key", by_code_point, nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("user_id", "namespace", "key", name="items_pkey"),
    )
    if op.get_context().dialect.name == "postgresql":
        op.execute("ALTER TABLE items ALTER COLUMN value SET STATISTICS 0")  # they would keep samples of it
        op.execute("ALTER TABLE items ENABLE ROW LEVEL SECURITY")
        op.execute("ALTER TABLE items FORCE ROW LEVEL SECURITY")
        op.execute(
            "CREATE POLICY own_rows ON items USING "
            "(user_id = current_setting('reactor_memory.user_id', true)"
            " OR current_setting('reactor_memory.all_users', true) = 'yes')"
        )
