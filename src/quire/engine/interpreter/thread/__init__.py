"""The thread of a directive: an agent that follows a document under permissions, limits and hooks.

What is pure stands in a module each (`inputs`, `returns`, `limits`, `hooks`, `compose`, `messages`); nothing is
imported here, so that a command pays only for the parts that it uses.
"""
