"""A very small MCP server: one prompt, the style of the house. Run it as `python house_server.py`."""

from __future__ import annotations

from mcp.server.mcpserver import MCPServer

server = MCPServer("house")


@server.prompt()
def style() -> str:
    """The rules that every change has to keep."""
    return "\n".join(
        (
            "The style of the house:",
            "- names are whole words",
            "- an error says what to do next",
            "- no comment repeats the code",
        )
    )


if __name__ == "__main__":
    server.run()
