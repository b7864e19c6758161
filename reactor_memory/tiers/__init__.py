"""Progressive summarisation: the newest messages as they are, the ones before condensed, everything older compressed.

`classification`, `planning` and `portions` decide, purely; `writing` asks the model; `service` reads, lets decide,
lets write, and stores once; `strategy` shows the result in a context; `background` does it behind a save.
"""
