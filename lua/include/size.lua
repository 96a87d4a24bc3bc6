-- How much a run has appended, altogether and in this minute, is the field `size` of its record: "events bytes minute events bytes".
-- What it is with so much more, as text; then what it has too much of for good, or how long it has to wait, ms. Limits of 0 are none. What
-- is too much for any minute is let in into an empty one.
local function grow_size(held, count, bytes, at, most_events, most_bytes, event_rate, byte_rate)
  local n, b, m, mn, mb = string.match(held or '0 0 0 0 0', '^(%d+) (%d+) (%d+) (%d+) (%d+)$')
  local minute = math.floor(at / 60000)
  if tonumber(m) ~= minute then
    mn, mb = 0, 0
  end
  local used, used_bytes = mn + count, mb + bytes
  local events, all_bytes = n + count, b + bytes
  local full, wait
  if most_events > 0 and events > most_events then
    full = 'events'
  elseif most_bytes > 0 and all_bytes > most_bytes then
    full = 'bytes'
  elseif used > count and ((event_rate > 0 and used > event_rate) or (byte_rate > 0 and used_bytes > byte_rate)) then
    wait = (minute + 1) * 60000 - at
  end
  return string.format('%d %d %d %d %d', events, all_bytes, minute, used, used_bytes), full, wait
end
