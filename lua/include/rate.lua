-- How often something was done in this minute of the server's clock: a field is "minute count".
local function used(key, kind, minute)
  local at, count = string.match(redis.call('HGET', key, kind) or '', '^(%d+) (%d+)$')
  return tonumber(at) == minute and tonumber(count) or 0
end

-- Sent again because its reply was lost it counts twice: a rate is a bound, not an account.
local function use(key, kind, minute, count)
  redis.call('HSET', key, kind, string.format('%d %d', minute, count + 1))
  redis.call('PEXPIRE', key, 120000)
end
