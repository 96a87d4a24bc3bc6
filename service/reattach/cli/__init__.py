"""The command line: everything in one command, and a command for every part."""
