"""Between symbols and text: Programs, the lowering to them, and their derivatives."""
