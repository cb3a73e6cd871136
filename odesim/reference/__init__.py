"""Reference training of small transformers in numpy, with hand-written backward passes, to test theories against."""
