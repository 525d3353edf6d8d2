"""What is judged after the fact."""
