"""Small networks trained without torch, compared with their theory, and the claims of the papers: a room that nothing below imports."""
