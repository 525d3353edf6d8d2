"""The search for what a target can be called with: runs beside torch, in the process forked for it."""
