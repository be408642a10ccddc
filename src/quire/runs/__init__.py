"""Start, drive, resume, fork and explain runs: the engine with adapters behind its ports. The command line, the Python
API and every server use this package."""
