"""Many members of one System: lanes of a processor, threads, chunks on disk."""
