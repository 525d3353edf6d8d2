"""Records what the operations of the installed torch do, for the table that the tape reads."""
