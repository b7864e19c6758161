"""Where responses that are being written live if not in the database of the log, and how their changes are noticed."""
