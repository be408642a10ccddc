"""Exploration: run a document with drawn inputs, replies, results and answers, and look for broken promises."""
