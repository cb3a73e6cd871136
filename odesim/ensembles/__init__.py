"""Ensembles as data: designs, requests, members, chunks, ledgers. Nothing is integrated here."""
