"""Text made comparable: the same functions for indexing and for asking."""
