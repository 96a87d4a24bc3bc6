-- lapse: forgets the head of a session's log, as far as runs whose events it names keep none any more.
-- keys: session session_log lapses timers
-- args: member
-- reply: OK through
-- uses: clock int
local through = tonumber(redis.call('HGET', session, 'lapsed') or 0)
local now = int(now_ms())
local due = redis.call('ZRANGE', lapses, '-inf', now, 'BYSCORE')
for _, place in ipairs(due) do
  through = math.max(through, tonumber(place))
end
if #due > 0 then
  local latest = tonumber(redis.call('HGET', session, 'sequence'))
  redis.call('HSET', session, 'lapsed', int(through))
  redis.call('ZREMRANGEBYSCORE', lapses, '-inf', now)
  -- The newest entry stays: who follows the log must find there that it has missed something.
  redis.call('XTRIM', session_log, 'MINID', '=', int(math.min(through + 1, latest)) .. '-0')
end
redis.call('ZREM', timers, member)
return { 'OK', through }
