"""The tools that come with Quire: files of the workspace, HTTP, a shell. Each kind is imported when it is first
called."""
