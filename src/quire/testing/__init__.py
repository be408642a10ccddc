"""Tests of documents: run their cases without a model, a key or a network, and report the failures."""
