"""The editor server: what `gradfix server` says to an editor, over the language server protocol.

One process speaks the protocol and knows the texts that are open (`main`, `desk`, `documents`). Two others
play them (`worker`, `analyst`), one for what is found and, once there is something, one for what would mend
it; they are killed where they take too long, so that no text ever stops the first.
"""
