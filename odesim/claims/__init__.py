"""The ledger: statements of the papers, each checked by a run, with the verdict that is recorded for it."""

from odesim.lab.claims import Claim, Measurement, Statement, Verdict, deviation

__all__ = ["Claim", "Measurement", "Statement", "Verdict", "deviation"]
