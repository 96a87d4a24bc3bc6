-- uses: int
-- Tells everybody who follows the run: one entry per batch in the log of its session, where it has one, and a bell.
-- The entry's id is the session's sequence after the batch, so that any place in a session is found by one XRANGE. The bell is a hint,
-- never data: losing one costs time only. Returns the session's sequence.
local function tell(bell, session, session_log, id, first, last, at)
  if not session then
    redis.call('XADD', bell, 'MAXLEN', '~', '10000', '*', 'run', id)
    return 0
  end
  local place = redis.call('HINCRBY', session, 'sequence', int(last - first + 1))
  redis.call('XADD', session_log, 'MAXLEN', '~', 65536, int(place) .. '-0', 'run', id, 'first', int(first), 'last', int(last),
    'at', int(at))
  -- The session's name is the last part of its key.
  redis.call('XADD', bell, 'MAXLEN', '~', 10000, '*', 'run', id, 'session', string.sub(session, -30))
  return place
end
