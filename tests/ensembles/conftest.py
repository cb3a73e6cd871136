"""What tests of runs on disk share."""

import pytest

from tests.ensembles.begun import SIZE


@pytest.fixture
def small_chunks(monkeypatch):
    """Chunks of 8 members, so that a few dozen are several."""
    monkeypatch.setattr("odesim.api.ensemble_manifest.chunk_size", lambda count, row: min(SIZE, count))
