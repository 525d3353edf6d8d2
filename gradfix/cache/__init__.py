"""What earlier runs have found, kept for as long as all that it hangs on is the same."""
