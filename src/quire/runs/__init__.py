"""Start, drive, resume, look at, fork, export and launch runs."""
