"""An index of the messages that are archived or cleared: of a conversation that never archived it holds nothing."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    is_archived = sa.text("archived_until IS NOT NULL")
    op.create_index(
        "messages_archived",
        "messages",
        ["group_id", "conversation_id", "seq", "archived_until", "state", "archived_by"],
        sqlite_where=is_archived,
        postgresql_where=is_archived,
    )
