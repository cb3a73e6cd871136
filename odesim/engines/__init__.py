"""Engines that integrate many members: in the lanes of one core, on a GPU, or one by one."""
