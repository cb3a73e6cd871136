"""Optimisers as flows and as maps on simple losses: signs, Adam, momentum, Muon, and what their limits keep of them."""
