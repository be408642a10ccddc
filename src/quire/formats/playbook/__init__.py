"""The playbook format: a chain of prompts in plain Markdown."""
