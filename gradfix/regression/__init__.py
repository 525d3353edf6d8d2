"""The tests that stay: a pytest file for what was mended, which fails on the text before and passes after."""
