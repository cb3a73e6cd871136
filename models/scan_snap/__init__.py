"""One layer of attention favours distinct tokens, then freezes."""
