"""`quire mcp`: the documents of a workspace as tools of an MCP server.

    catalogue      the offered documents, with their tool names and inputs
    calls          calls of clients as runs: waited for, left running, or cancelled
    clients        the client of a request, in either generation of the protocol
    elicitation    questions of a run, as elicitation in both generations of the protocol
    notifications  the steps of a run as notifications
    launch_tools   the tools that are always offered
    launched_runs  results and letters that come after the call
    results        envelopes as results of tools
    server         the server itself, and its stdio transport
    http           the HTTP transport

Nothing here is imported before that verb is used: importing the MCP library alone takes most of a second.
"""
