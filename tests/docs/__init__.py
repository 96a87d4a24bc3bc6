"""What README.md says is true: its blocks are run, its tables are compared with the code."""
