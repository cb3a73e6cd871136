"""The table of a comparison as text."""

import odesim


def test_the_parts_stand_in_one_column():
    """Words such as loss_batch are not pushed out of the column of their texts."""
    text = str(odesim.compare("scan_snap.full", task="scan_snap", steps=4))
    head = text.split("\n\n")[0].splitlines()
    starts = [len(line) - len(line.partition(" ")[2].lstrip()) for line in head if not line.startswith(" ")]
    assert len(starts) > 3 and len(set(starts)) == 1 and any(line.startswith("loss_batch  ") for line in head)
