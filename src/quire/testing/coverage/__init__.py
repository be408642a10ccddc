"""Coverage of document tests: the decisions of a document, those that runs took, and those that are missing."""
