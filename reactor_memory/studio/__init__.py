"""The Studio: a page on this machine that shows what a terminal cannot (extra `studio`)."""
