"""Cassettes: replies of a real model that were recorded once, and answer the same prompts in tests."""
