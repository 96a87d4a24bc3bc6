"""The API: requests in, answers and event streams out. Handlers parse, authorise, call and encode; everything else has its own file."""
