"""Progressive summarisation: the newest messages as they are, the ones before condensed, everything older compressed.

`classification`, `plan` and `portions` decide, purely; `writer` asks the model; `ranges` reads, lets write, and
stores once; `service` puts them together; `strategy` shows the result in a context; `background` does it behind a save.
The chat memory is another face of `ranges`, with a plan of its own.
"""
