-- vacate: ends a session that no run ever came into, or none is in any more, once its time is over.
-- keys: session session_log session_runs open lapses timers sessions
-- args: member ttl:int
-- reply: OK | EARLY
-- uses: clock close
local created = redis.call('HGET', session, 'created_at')
if created and redis.call('EXISTS', session_runs) == 0 then
  -- Another session of this name may have been made since the timer was set.
  local due = tonumber(created) + ttl
  if due > now_ms() then
    redis.call('ZADD', timers, int(due), member)
    return { 'EARLY' }
  end
  close_session({ session = session, session_log = session_log, open = open, lapses = lapses, sessions = sessions }, ttl)
end
redis.call('ZREM', timers, member)
return { 'OK' }
