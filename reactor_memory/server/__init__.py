"""The log and its memory over HTTP, for many users and agents (extra ``http``)."""
