"""What codemods are made of: how each kind of statement and expression is written anew."""
