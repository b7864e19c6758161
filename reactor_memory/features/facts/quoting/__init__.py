"""The reader that quotes: statements with their speaker, calls with their outcome, in the words of the log.

Its records are facts like all others. `record_keys` says how they are named, `statements_said` and `calls_made` read
them out of messages, `links` tells what they have to do with each other, `quotation_lines` writes them.
"""
