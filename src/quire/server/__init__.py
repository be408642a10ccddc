"""`quire serve`: the HTTP API and the web page of one workspace.

`routes` lists every endpoint; `app` builds the ASGI application from it; `guard` decides which requests get in.
"""
