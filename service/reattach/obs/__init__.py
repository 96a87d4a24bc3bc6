"""What an operator sees: logs, metrics, the record of every connection."""
