"""The format of test files, `x.test.yaml`: cases for one document, read into a tree with positions."""
