"""`quire mcp`: the documents of a workspace as tools of an MCP server.

    catalogue     the offered documents with their tool names and inputs; the clients, and how they are asked
    calls         calls of clients as runs: waited for, left running, or cancelled
    launch_tools  the tools that are always offered, and what comes after a call
    server        the server itself, and its stdio transport
    http          the HTTP transport

Nothing here is imported before that verb is used: importing the MCP library alone takes most of a second.
"""
