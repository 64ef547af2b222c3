"""The keys of JSON documents, with types and meanings: what builds a document and what reads it agree on them."""
