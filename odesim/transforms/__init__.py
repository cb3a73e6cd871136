"""Systems made of Systems: gradients, sensitivities, other clocks, held conditions."""
