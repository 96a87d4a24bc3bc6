-- establish: makes a session without a run, or finds the one there is.
-- keys: session timers sessions
-- args: nonce ttl:int fields...
-- reply: OK | EXISTS
-- uses: clock int
if redis.call('HEXISTS', session, 'created_at') == 1 then
  return { redis.call('HGET', session, 'nonce') == nonce and 'OK' or 'EXISTS' }
end
local at, name = now_ms(), string.sub(session, -30)
redis.call('HSET', session, 'created_at', int(at), 'nonce', nonce, unpack(fields))
redis.call('PERSIST', session)
redis.call('ZADD', sessions, int(at), name)
-- Where no run comes into it, it goes as a run would.
redis.call('ZADD', timers, int(at + ttl), 'vacate:' .. name .. ' ' .. sessions)
return { 'OK' }
