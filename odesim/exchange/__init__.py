"""Systems for others: as a document of JSON that other languages read, and as code in them."""
