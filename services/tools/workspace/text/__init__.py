"""What is in text files: marks, windows, edits and differences."""
