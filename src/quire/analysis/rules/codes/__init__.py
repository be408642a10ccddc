"""The codes of the rules, one module for each family."""
