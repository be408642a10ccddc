"""A very small MCP server: one prompt, the style of the house. Run it as `python house_server.py`."""

from __future__ import annotations

from mcp.server.mcpserver import MCPServer

server = MCPServer("house")


@server.prompt()
def style() -> str:
    """The rules that every document has to keep."""
    return "\n".join(
        (
            "The style of the house:",
            "- names are whole words",
            "- the decision comes first, its reasons after it",
            "- every number has a source",
        )
    )


if __name__ == "__main__":
    server.run()
