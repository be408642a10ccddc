"""`quire tools`: the tools that documents may name."""

from __future__ import annotations

import asyncio

import click

from quire.cli.stdio import write_json, write_lines


@click.command("tools")
@click.option("--connect", is_flag=True, help="Start the MCP servers that you agreed to, and list their tools.")
@click.option("--json", "as_json", is_flag=True, help="With ids, descriptions and the schemas of arguments.")
def command(connect: bool, as_json: bool) -> None:
    """List the tools that documents may name, with the class of their effect (read, idempotent or write), their tier of
    risk and their source: quire, python or an MCP server.

    FREE. Starts no server without --connect.
    """
    from quire.display.text import table
    from quire.display.visible import visible
    from quire.operations.tools import tools_data
    from quire.runs.connections import ask_servers
    from quire.workspace.configuration import settings_here

    settings = settings_here()
    listing = asyncio.run(ask_servers(settings, settings.servers)) if connect else None
    data = tools_data(settings, listing)
    if as_json:
        write_json(data)
        return
    rows = []
    for tool in data["tools"]:
        arguments = ", ".join(tool["schema"].get("properties", ()))
        name = next(iter(tool["aliases"]), tool["id"])
        rows.append([visible(name), tool["class"], tool["tier"], tool["source"], visible(arguments)])
    write_lines(table(rows, ["TOOL", "CLASS", "TIER", "SOURCE", "ARGUMENTS"]))
    for place, reason in data["not_asked"].items():
        click.echo(f"{visible(place)}: {visible(reason)}", err=True)
