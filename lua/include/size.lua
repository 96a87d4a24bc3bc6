-- uses: int
-- How much a run has appended, altogether and in this minute: "events bytes minute events bytes". Limits of 0 are none.
local function sizes(run, at)
  local minute = math.floor(at / 60000)
  local n, b, m, mn, mb = string.match(redis.call('HGET', run, 'size') or '', '^(%d+) (%d+) (%d+) (%d+) (%d+)$')
  if tonumber(m) ~= minute then
    mn, mb = 0, 0
  end
  return tonumber(n or 0), tonumber(b or 0), minute, tonumber(mn), tonumber(mb)
end

-- What it has too much of for good; else how long it has to wait, ms. What is too much for any minute is let in into an empty one.
local function no_room(run, count, bytes, most_events, most_bytes, event_rate, byte_rate, at)
  local n, b, minute, mn, mb = sizes(run, at)
  if most_events > 0 and n + count > most_events then
    return 'events'
  end
  if most_bytes > 0 and b + bytes > most_bytes then
    return 'bytes'
  end
  if mn > 0 and ((event_rate > 0 and mn + count > event_rate) or (byte_rate > 0 and mb + bytes > byte_rate)) then
    return nil, (minute + 1) * 60000 - at
  end
end

local function took_room(run, count, bytes, at)
  local n, b, minute, mn, mb = sizes(run, at)
  redis.call('HSET', run, 'size', string.format('%d %d %d %d %d', n + count, b + bytes, minute, mn + count, mb + bytes))
end
