"""How much a memory keeps, what that costs, and how steady it is: measured by replaying sessions, without a judge."""
