-- A command runs inside Redis: Lua 5.1 with these globals, and none of its own.
std = "lua51"
read_globals = { "redis", "cjson", "KEYS", "ARGV" }
max_line_length = 140
max_cyclomatic_complexity = 25
