"""Work on other machines: tasks travel with all that they may read, so that nothing has to be shared."""
