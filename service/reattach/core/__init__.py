"""Rules and records without any input or output: no Redis, no HTTP, no clock."""
