"""The pages of the rules, made of the rules and their fixtures: `python -m docs`."""
