"""Small networks trained without torch, compared with their theory, and the ledger of claims: a room that nothing below imports."""
