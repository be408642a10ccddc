"""The three actions of directives as tools: fetch, execute and sign an item."""
