"""The editor server: what `gradfix server` says to an editor, over the language server protocol.

One process speaks the protocol and knows the texts that are open (`main`, `desk`, `documents`); another plays
them (`worker`, `analyst`) and is killed where it takes too long, so that no text ever stops the first.
"""
