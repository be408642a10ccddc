"""The three actions of directives as tools: fetch an item, execute one, sign one."""
