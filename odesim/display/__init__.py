"""Systems as people read them: text, LaTeX, pages."""
