"""Secrets that the service makes once and all its processes share, such as the one that signs page tokens."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "service_secrets",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("secret", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="service_secrets_pkey"),
    )
    if op.get_context().dialect.name == "postgresql":
        op.execute("ALTER TABLE service_secrets ALTER COLUMN secret SET STATISTICS 0")  # they would keep samples of it
