"""What integrates many members: lanes of one core, a GPU, one by one."""
