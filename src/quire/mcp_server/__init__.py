"""`quire mcp`: the documents of a workspace as tools of an MCP server.

    catalogue   which documents there are, under which tool names, with which inputs
    calls       a call of a client as a run: waited for, left to itself, or cancelled
    questions   what a run asks, as elicitation in both generations of the protocol
    progress    the steps of a run as notifications
    late        results and letters that come after the call
    server      all of it as one server; `stdio` and `http` are the ways to reach it

Nothing here is imported before that verb is used: the library alone takes most of a second.
"""
