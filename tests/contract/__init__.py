"""The recovery contract, from a client's view over HTTP: thirteen checks, one named test each."""
