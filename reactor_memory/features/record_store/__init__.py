"""A log and its summaries in any store that keeps named records: what a plug-in's `RecordStore` is given."""
