"""Mutation tests of documents: small changes of a plan, and the question whether its tests notice each of them."""
