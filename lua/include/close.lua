-- uses: int
-- Ends a session that has no runs any more. Its last sequence is kept for a while: a session of the same name goes on from there, so that
-- no cursor into the old one can be taken for one into the new.
local function close_session(k, keep)
  local sequence = redis.call('HGET', k.session, 'sequence')
  for _, key in ipairs({ k.session, k.session_log, k.open, k.lapses }) do
    redis.call('DEL', key)
  end
  redis.call('ZREM', k.sessions, string.sub(k.session, -30))
  if sequence then
    redis.call('HSET', k.session, 'sequence', sequence)
    redis.call('PEXPIRE', k.session, int(keep))
  end
end
