"""A run as a file: what was said and done in it, fit to be kept, and to be shared after a look."""
