"""`quire serve`: the HTTP API and the web page."""
