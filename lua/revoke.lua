-- revoke: takes away what was given before now, or gives it back; tells every process.
-- keys: revoked bell
-- args: field ttl:int facts
-- reply: OK at | NONE
-- uses: clock int
-- Without facts it is given back. A value is "at until facts", times in ms.
if facts == '' and redis.call('HEXISTS', revoked, field) == 0 then
  return { 'NONE' }
end
local at = now_ms()
if facts == '' then
  redis.call('HDEL', revoked, field)
else
  redis.call('HSET', revoked, field, int(at) .. ' ' .. int(at + ttl) .. ' ' .. facts)
  -- As long as the longest of them. GT does nothing to a key without an expiry, which a new one is.
  if redis.call('PTTL', revoked) < 0 then
    redis.call('PEXPIREAT', revoked, int(at + ttl))
  end
  redis.call('PEXPIREAT', revoked, int(at + ttl), 'GT')
end
redis.call('HINCRBY', revoked, 'version', 1)
redis.call('XADD', bell, 'MAXLEN', '~', 10000, '*', 'run', 'revocations')
return { 'OK', at }
