"""What right-hand sides take and give: arrays by the names of states and parameters."""

from typing import Any

Arrays = dict[str, Any]
