"""The directive format: Markdown for an agent, with an XML fence for the engine; and knowledge files."""
