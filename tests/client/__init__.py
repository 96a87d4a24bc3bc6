"""The browser module, run by Node: its pure parts by themselves, the rest against the real service."""
