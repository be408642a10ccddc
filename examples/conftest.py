"""`pytest examples` runs the tests of documents. The Python tests of an example belong to its own project."""

collect_ignore_glob = ["*/tests/*"]
