-- revoked: what is taken away now, unless nothing has changed since a version; forgets what is over.
-- keys: revoked
-- args: known
-- reply: OK version found | SAME
-- uses: clock
local version = redis.call('HGET', revoked, 'version') or '0'
if version == known then
  return { 'SAME' }
end
local now, found, all = now_ms(), {}, redis.call('HGETALL', revoked)
for i = 1, #all, 2 do
  local ends = string.match(all[i + 1], '^%d+ (%d+) ')
  if ends and tonumber(ends) <= now then
    redis.call('HDEL', revoked, all[i])
  elseif ends then
    found[#found + 1] = all[i + 1]
  end
end
return { 'OK', version, found }
