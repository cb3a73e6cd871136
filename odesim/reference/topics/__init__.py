"""The attention layer of the task topics: values, keys and queries on documents without order, with hand-written gradients."""
